package cli

import (
	"bytes"
	"encoding/json"
	"testing"
)

// TestNothingIsMisread: what a terminal would take for a command or another order is
// escaped as in JSON, however the text is cut into writes; everything else stays.
func TestNothingIsMisread(t *testing.T) {
	const text = "a\x00\x1b[31m\x7f\r\u009b\u061c\u200e\u202e\u2066\u2028\u2029\ufeff \xff é \U0001F469\u200d\U0001F680\n\tb\xe2"
	const want = `a\u0000\u001b[31m\u007f\u000d\u009b\u061c\u200e\u202e\u2066\u2028\u2029\ufeff` + " \xff é \U0001F469\u200d\U0001F680\n\tb\xe2"
	for size := 1; size <= len(text); size++ {
		var stdout, stderr bytes.Buffer
		_, out := (&Program{}).Results(t.Context(), &stdout)
		talk := Messages(&stderr)
		for rest := text; rest != ""; {
			part := rest[:min(size, len(rest))]
			if n, err := out.Write([]byte(part)); n != len(part) || err != nil {
				t.Fatal(n, err)
			}
			talk.Write([]byte(part))
			rest = rest[len(part):]
		}
		if out.Code(Good, &stderr); stdout.String() != want || stderr.String() != want[:len(want)-1] {
			t.Fatalf("in pieces of %d: %q, %q", size, &stdout, &stderr)
		}
	}
	if got := Line("a\n\t\u202eb"); got != `a\u000a\u0009\u202eb` {
		t.Error(got)
	}
	var back string
	if err := json.Unmarshal([]byte(`"`+Line("\u202e\x00\u2028")+`"`), &back); err != nil || back != "\u202e\x00\u2028" {
		t.Error(back, err)
	}
}
