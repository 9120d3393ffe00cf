package text

import "strings"

// minMedia is the length from which a text can be media: nobody reads so much
// of base64, and less is quickly searched.
const minMedia = 512

// mediaStarts are how files of pictures, sounds, films and documents begin, in
// base64: PNG, JPEG, GIF, BMP, TIFF, RIFF (WebP, WAV), PDF, ZIP (also office
// documents), gzip, Ogg, MP3, MP4, Matroska, ICO.
var mediaStarts = []string{
	"iVBORw0KGgo", "/9j/", "R0lGODdh", "R0lGODlh", "Qk0", "SUkqA", "TU0AK", "UklGR", "JVBERi0", "UEsDB", "H4sI", "T2dnUw", "SUQz", "AAAAGGZ0eXA", "AAAAIGZ0eXA", "AAAAHGZ0eXA", "GkXfo", "AAABAA",
}

// isMedia reports whether a text is media in base64 and nothing else, with or
// without the head of a data URL.
func isMedia(text string) bool {
	if len(text) < minMedia {
		return false
	}
	if strings.HasPrefix(text, "data:") && !strings.HasPrefix(text, "data:text") {
		const head = ";base64,"
		at := strings.Index(text[:256], head)
		if at < 0 {
			return false
		}
		text = text[at+len(head):]
	}
	for _, start := range mediaStarts {
		if strings.HasPrefix(text, start) {
			return isBase64(text)
		}
	}
	return false
}

func isBase64(text string) bool {
	text = strings.TrimRight(text, "=")
	for i := range len(text) {
		switch c := text[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '+', c == '/':
		default:
			return false
		}
	}
	return true
}
