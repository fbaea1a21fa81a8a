"""Hadoop's local files without processes. No imports of the project: the reference engine's Python reads it, too.

Without its native library Hadoop starts `chmod`, by a helper of Java's, for each file and folder that it makes: 7 ms of
each, 8 % of what two phases of the suite did side by side. Java sets the same permissions itself.
"""

_NAME = "alluvium.tests.LocalFiles"
_JAVA = """
package alluvium.tests;
import java.nio.file.Files;
import java.nio.file.attribute.PosixFilePermissions;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.permission.FsPermission;

public class LocalFiles extends org.apache.hadoop.fs.RawLocalFileSystem {
    public void setPermission(Path path, FsPermission permission) throws java.io.IOException {
        if (permission.toShort() != (permission.toShort() & 0777)) {
            super.setPermission(path, permission);  // Java knows no sticky bit
            return;
        }
        Files.setPosixFilePermissions(
            pathToFile(path).toPath(), PosixFilePermissions.fromString(permission.toString()));
    }
}
"""


def start_no_processes(context, configuration) -> None:
    """Who asks for the local file system from now on finds one that starts no processes.

    Args:
        context: A `SparkContext` whose JVM is this process's.
        configuration: Hadoop's, of that context.
    """
    java = context._jvm
    compiler = java.org.codehaus.janino.SimpleCompiler()
    compiler.cook(_JAVA)
    files = java.org.apache.hadoop.fs.LocalFileSystem(compiler.getClassLoader().loadClass(_NAME).newInstance())
    root = java.java.net.URI("file:///")
    files.initialize(root, configuration)
    kinds = ("java.net.URI", "org.apache.hadoop.conf.Configuration", "org.apache.hadoop.fs.FileSystem")
    of, named = java.java.lang.Class, java.java.lang.Class.forName
    # What Hadoop's own tests put their file systems into the cache by.
    known = named(kinds[-1]).getDeclaredMethod("addFileSystemForTesting", _array(context, of, map(named, kinds)))
    known.setAccessible(True)
    known.invoke(None, _array(context, java.java.lang.Object, (root, configuration, files)))


def _array(context, kind, items):
    items = list(items)
    array = context._gateway.new_array(kind, len(items))
    for place, item in enumerate(items):
        array[place] = item
    return array
