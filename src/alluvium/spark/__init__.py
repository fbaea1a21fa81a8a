"""The only interpreter of plans on Spark. Contains no word of any format."""
