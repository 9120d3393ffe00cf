package mount

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
)

// hashedWhole is the size up to which a file is read to tell whether it
// changed. Scripts are smaller; of larger files, mostly interpreters and
// binaries, what the file system says of them must do.
const hashedWhole = 4 << 20

// FileFingerprint returns a short text that changes when one of the files
// does: when its content or mode is another, or it is removed or made. A script
// that is only saved again as it was keeps it. Without files it is "".
func FileFingerprint(files []string) string {
	if len(files) == 0 {
		return ""
	}
	h := sha256.New()
	for _, path := range files {
		fmt.Fprintf(h, "%q ", path)
		if err := hashFile(h, path); err != nil {
			fmt.Fprintf(h, "error %q", err)
		}
		h.Write([]byte{'\n'})
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}

func hashFile(h io.Writer, path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	fmt.Fprintf(h, "%v %d ", info.Mode(), info.Size())
	if !info.Mode().IsRegular() || info.Size() > hashedWhole {
		fmt.Fprintf(h, "%d", info.ModTime().UnixNano())
		return nil
	}
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	_, err = io.Copy(h, io.LimitReader(file, hashedWhole))
	return err
}
