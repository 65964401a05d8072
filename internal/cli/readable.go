package cli

import (
	"fmt"
	"io"
	"unicode"
	"unicode/utf8"
)

// readable writes text for people, who may read it on a terminal. Characters that a terminal takes
// for a command, or for another order of the text, is written \u202e, as JSON has it
// too: keys, values and messages may hold it, because applications chose them. Lines and
// tabs stay; Line escapes those too. A rune in two writes is one.
type readable struct {
	to   io.Writer
	rest []byte // the beginning of a rune whose end is still to come
}

// Raw is the writer beneath, for text that moves the cursor on purpose.
func (w *readable) Raw() io.Writer { return w.to }

// Write escapes characters that a terminal would obey or misrender. A character that is cut between two
// writes waits for its rest.
func (w *readable) Write(b []byte) (int, error) {
	text := b
	if len(w.rest) > 0 {
		text = append(w.rest, b...)
	}
	whole := len(text) - begun(text)
	out := text[:whole]
	if firstMisread(out) >= 0 {
		out = appendReadable(nil, out, misread)
	}
	w.rest = append([]byte(nil), text[whole:]...)
	if err := w.writeText(out); err != nil {
		return 0, err
	}
	return len(b), nil
}

// writeText writes text, if there is any: a full disk refuses even a write of nothing.
func (w *readable) writeText(text []byte) error {
	if len(text) == 0 {
		return nil
	}
	_, err := w.to.Write(text)
	return err
}

// writeRest writes the rest of a rune that never came.
func (w *readable) writeRest() error {
	err := w.writeText(w.rest)
	w.rest = nil
	return err
}

// begun is how many bytes at the end of a text may be the beginning of a rune.
func begun(text []byte) int {
	for n := 1; n < utf8.UTFMax && n <= len(text); n++ {
		if last := text[len(text)-n:]; utf8.RuneStart(last[0]) {
			if !utf8.FullRune(last) {
				return n
			}
			return 0
		}
	}
	return 0
}

// Line is a text that stands in a line of a table: characters that mislead a terminal are escaped,
// ends of lines and tabs too.
func Line(s string) string {
	return string(appendReadable(nil, []byte(s), func(r rune) bool { return r == '\n' || r == '\t' || misread(r) }))
}

// firstMisread is where the first such rune begins, -1 if there is none, which is the usual case.
func firstMisread(text []byte) int {
	for i := 0; i < len(text); {
		if c := text[i]; c >= ' ' && c < 0x7f || c == '\n' || c == '\t' {
			i++
			continue
		}
		r, n := utf8.DecodeRune(text[i:])
		if misread(r) {
			return i
		}
		i += n
	}
	return -1
}

// appendReadable appends a text with its bad runes escaped.
func appendReadable(out, text []byte, bad func(rune) bool) []byte {
	for len(text) > 0 {
		r, n := utf8.DecodeRune(text)
		if bad(r) {
			out = fmt.Appendf(out, `\u%04x`, r)
		} else {
			out = append(out, text[:n]...)
		}
		text = text[n:]
	}
	return out
}

// misread reports whether a terminal does something else with a rune than show it in
// its place.
func misread(r rune) bool {
	switch {
	case r == '\n' || r == '\t':
		return false
	case r == '\u2028' || r == '\u2029' || r == '\ufeff':
		return true
	}
	return unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r)
}
