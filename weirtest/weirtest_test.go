package weirtest

import (
	"fmt"
	"strings"
	"testing"
)

// rows are a user and two orders.
const rows = `{"op":"put","entity":"User","item":{"user":"u1"}}
{"op":"put","entity":"Order","item":{"user":"u1","order":"o1","total":9}}
{"op":"put","entity":"Order","item":{"user":"u1","order":"o2","total":2}}
`

func TestPage(t *testing.T) { Page(t, "testdata/shop.test.md") }

func TestCase(t *testing.T) {
	Case(t, "testdata/shop.yaml", rows, "user user=u1 --only spent", `{"spent": 11}`)
}

// failing is a test that notes what fails.
type failing struct {
	testing.TB
	said string
}

func (f *failing) Errorf(format string, args ...any) { f.said += fmt.Sprintf(format, args...) }

// TestCaseFails: an answer that is another one, and a query that is none, fail the test.
func TestCaseFails(t *testing.T) {
	f := &failing{TB: t}
	Case(f, "testdata/shop.yaml", rows, "user user=u1 --only spent", `{"spent":12}`)
	if !strings.Contains(f.said, "- {\"spent\":12}\n+ {\"spent\":11}\n") {
		t.Error(f.said)
	}
	f.said = ""
	if Case(f, "testdata/shop.yaml", rows, "users", ""); !strings.Contains(f.said, `no query "users"`) {
		t.Error(f.said)
	}
}
