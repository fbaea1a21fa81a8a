"""Classes of Catalyst's expressions that compute a value from their children alone, in the Sparks that we know.

They are those in which the functions of `expr.sql.row_functions`, operators, casts and constants end. Left out, and
thereby refused in an expression of a table: subqueries, aggregates, windows and generators, functions that users made
(`ScalaUDF`, `PythonUDF`), session variables, whatever calls Java by name (`CallMethodViaReflection`, `Invoke`,
`StaticInvoke`), and what tells of the job (`InputFileName`, `SparkPartitionID`). A class that a later version of Spark
adds is refused until it stands here.
"""

from __future__ import annotations

#: Of the names of all these classes.
PACKAGE = "org.apache.spark.sql.catalyst.expressions."
_NAMES = """
    Abs Acos Acosh Add AddMonths Alias And ArrayAggregate ArrayAppend ArrayCompact ArrayContains ArrayDistinct
    ArrayExcept ArrayExists ArrayFilter ArrayForAll ArrayInsert ArrayIntersect ArrayJoin ArrayMax ArrayMin
    ArrayPosition ArrayPrepend ArrayRemove ArrayRepeat ArraySize ArraySort ArrayTransform ArrayUnion ArraysOverlap
    ArraysZip Ascii Asin Asinh AssertTrue Atan Atan2 Atanh AttributeReference BRound Base64 Between Bin BinaryPad
    BinaryPredicate BitLength BitwiseAnd BitwiseCount BitwiseGet BitwiseNot BitwiseOr BitwiseXor CaseWhen Cast
    Cbrt Ceil CheckOverflow Chr Coalesce Collate Collation CommonExpressionDef CommonExpressionRef Concat ConcatWs
    Contains Conv ConvertTimezone Cos Cosh Cot Crc32 CreateArray CreateMap CreateNamedStruct Csc CsvToStructs
    CurrentDate CurrentTime CurrentTimeZone CurrentTimestamp CurrentUser DateAdd DateAddInterval DateAddYMInterval
    DateDiff DateFormatClass DateFromUnixDate DatePart DateSub DatetimeSub DayName DayOfMonth DayOfWeek DayOfYear
    Decode Divide DivideDTInterval DivideInterval DivideYMInterval ElementAt Elt Encode EndsWith EqualNull
    EqualNullSafe EqualTo EulerNumber Exp Expm1 Extract ExtractANSIIntervalDays ExtractANSIIntervalHours
    ExtractANSIIntervalMinutes ExtractANSIIntervalMonths ExtractANSIIntervalSeconds ExtractANSIIntervalYears
    ExtractIntervalDays ExtractIntervalHours ExtractIntervalMinutes ExtractIntervalMonths ExtractIntervalSeconds
    ExtractIntervalYears Factorial FindInSet Flatten Floor FormatNumber FormatString FromUTCTimestamp FromUnixTime
    Get GetArrayItem GetArrayStructFields GetJsonObject GetMapValue GetStructField GetTimestamp GreaterThan
    GreaterThanOrEqual Greatest Hex Hour HoursOfTime Hypot ILike If In InitCap IntegralDivide IsNaN IsNotNull
    IsNotUnknown IsNull IsUnknown IsValidUTF8 JsonObjectKeys JsonToStructs LambdaFunction LastDay Least Left
    Length LengthOfJsonArray LessThan LessThanOrEqual Levenshtein Like LikeAll LikeAny Literal LocalTimestamp Log
    Log10 Log1p Log2 Logarithm Lower Luhncheck MakeDTInterval MakeDate MakeInterval MakeTime MakeTimestamp
    MakeTimestampFromDateTime MakeTimestampLTZ MakeTimestampNTZ MakeValidUTF8 MakeYMInterval MapConcat
    MapContainsKey MapEntries MapFilter MapFromArrays MapFromEntries MapKeys MapValues MapZipWith Mask Md5
    MicrosToTimestamp MillisToTimestamp Minute MinutesOfTime Month MonthName MonthsBetween Multiply
    MultiplyDTInterval MultiplyInterval MultiplyYMInterval Murmur3Hash NaNvl NamedLambdaVariable NextDay Not
    NotLikeAll NotLikeAny Now NullIf NullIfResult NullIfZero Nvl Nvl2 OctetLength Or Overlay ParseToDate
    ParseToTimestamp ParseUrl Pi Pmod Pow Quarter Quote RLike RaiseError RegExpCount RegExpExtract
    RegExpExtractAll RegExpInStr RegExpReplace RegExpSubStr Remainder ResolvedCollation Reverse Right Rint Round
    RoundCeil RoundFloor SchemaOfCsv SchemaOfJson Sec Second SecondWithFraction SecondsOfTime
    SecondsOfTimeWithFraction SecondsToTimestamp SemiStructuredExtract Sentences Sequence Sha1 Sha2 ShiftLeft
    ShiftRight ShiftRightUnsigned Signum Sin Sinh Size Slice SortArray SoundEx SplitPart Sqrt StartsWith
    StringDecode StringInstr StringInstrWithOccurrence StringLPad StringLocate StringRPad StringRepeat
    StringReplace StringSpace StringSplit StringSplitSQL StringToMap StringTranslate StringTrim StringTrimBoth
    StringTrimLeft StringTrimRight StructsToCsv StructsToJson Substring SubstringIndex Subtract SubtractDates
    SubtractTimes SubtractTimestamps Tan Tanh TimeAdd TimeAddInterval TimestampAdd TimestampAddInterval
    TimestampAddYMInterval TimestampDiff ToBinary ToCharacter ToDegrees ToNumber ToRadians ToTime ToUTCTimestamp
    ToUnixTimestamp TransformKeys TransformValues TruncDate TruncTimestamp TryAdd TryDivide TryElementAt TryEval
    TryMakeTimestamp TryMakeTimestampFromDateTime TryMod TryMultiply TrySubtract TryToBinary TryToNumber
    TryUrlDecode TryValidateUTF8 TypeOf TypedNullLiteral UnBase64 UnaryMinus UnaryPositive Unhex UnixDate
    UnixMicros UnixMillis UnixSeconds UnixTimestamp Upper UrlDecode UrlEncode ValidateUTF8 WeekDay WeekOfYear
    WidthBucket With XxHash64 Year YearOfWeek ZeroIfNull ZipWith variant.IsVariantNull variant.ParseJson
    variant.ToVariantObject variant.VariantGet xml.XPathBoolean xml.XPathDouble xml.XPathFloat xml.XPathInt
    xml.XPathList xml.XPathLong xml.XPathShort xml.XPathString
"""
KNOWN = frozenset(_NAMES.split())
