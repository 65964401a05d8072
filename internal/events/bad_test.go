package events

import (
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
)

// TestBad reads what is wrong and shows what is said of it. The commands of
// testdata/bad.txt are:
//
//	image    the attributes of an inserted item
//	record   a stream record
//	file     a file's content; REC1 to REC9 stand for good records, \r and \t for
//	         themselves, and with one-line the lines are joined
func TestBad(t *testing.T) {
	datadriven.RunTest(t, "testdata/bad.txt", func(t *testing.T, d *datadriven.TestData) string {
		switch d.Cmd {
		case "image":
			return readAll(strings.NewReader(`{"eventName":"INSERT","dynamodb":{"SequenceNumber":"1","Keys":{"k":{"S":"k"}},"NewImage":` + d.Input + `}}`))
		case "record":
			return readAll(strings.NewReader(d.Input))
		case "file":
			content := d.Input
			for n := range 10 {
				content = strings.ReplaceAll(content, fmt.Sprintf("REC%d", n), streamRecord(n))
			}
			content = strings.NewReplacer(`\r`, "\r", `\t`, "\t", `\0`, "\x00", `\xff`, "\xff", `\xfe`, "\xfe").Replace(content)
			if d.HasArg("one-line") {
				content = strings.ReplaceAll(content, "\n", "")
			}
			return shorten(readAll(strings.NewReader(content)))
		}
		return "unknown command " + d.Cmd
	})
}

// shorten leaves of good records what tells them apart.
func shorten(lines string) string {
	var b strings.Builder
	for line := range strings.Lines(lines) {
		if i := strings.Index(line, " pos="); i >= 0 && !strings.Contains(line, "bad:") {
			line = strings.Fields(line)[0] + " good " + strings.Fields(line[i:])[0] + "\n"
		}
		b.WriteString(line)
	}
	return b.String()
}
