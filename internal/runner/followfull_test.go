package runner_test

import (
	"errors"
	"strings"
	"testing"

	"weir/internal/deadletter"
	"weir/internal/failtest"
	"weir/internal/runner"
	"weir/internal/store"
)

// TestFullFollowerSays says that a follower with no room for the value that it follows is
// kept as a dead letter, once, and shows the value when a retry finds room.
func TestFullFollowerSays(t *testing.T) {
	m, err := loadText(t, `
model: press
tables: {press: {key: [PK, SK]}}
entities:
  Author: {where: {type: Author}, key: {PK: "AUTHOR#{id}", SK: METADATA}, attributes: {name: string}}
  Post: {where: {type: Post}, key: {PK: "POST#{id}", SK: METADATA}, attributes: {author: string}}
  Log: {where: {type: Log}, key: {PK: LOG, SK: "{id}"}, attributes: {author: string, name: string}}
derive:
  Log:
    row: Post
    keep: [insert]
    set: {id: id, author: author, name: {follow: Author.name, by: {id: author}}}
`)
	failtest.On(t, err)
	h := newHarness(t, m)
	defer h.close()
	app := func(lines ...string) runner.Result {
		t.Helper()
		from := len(h.records) + 1
		for _, line := range lines {
			failtest.On(t, h.write(line))
		}
		h.pull()
		var n runner.Result
		for i := from; i <= len(h.records); i++ {
			one, err := h.deliver(nil, []int{i})
			failtest.On(t, err)
			n.Add(one)
			h.pull()
		}
		return n
	}
	letters := func() (ids []string) {
		failtest.On(t, h.runner(nil).EachDeadLetter(t.Context(), func(d deadletter.Letter) error {
			if d.Kind != deadletter.Follow {
				t.Errorf("%s: %s", d.Kind, d.Reason)
			}
			ids = append(ids, d.ID)
			return nil
		}))
		return ids
	}
	shows := func(want string) {
		t.Helper()
		for _, row := range h.scan("press") {
			if row.Get("PK").Text() == "LOG" && row.Get("name").Text() != want {
				t.Errorf("it shows %q, should show %q", row.Get("name").Text(), want)
			}
		}
	}
	long := strings.Repeat("x", 300)
	app(`put press {"PK":"AUTHOR#a","SK":"METADATA","type":"Author","name":"Ada"}`,
		`put press {"PK":"POST#1","SK":"METADATA","type":"Post","author":"a"}`)
	app(`set press {"PK":"LOG","SK":"1"} {"pad":{"$noise":409400}}`)
	if n := app(`set press {"PK":"AUTHOR#a","SK":"METADATA"} {"name":"` + long + `"}`); n.Dead != 1 {
		t.Errorf("%+v", n)
	}
	if _, err := h.deliver(nil, []int{len(h.records)}); err != nil || len(letters()) != 1 {
		t.Fatal(err, letters())
	}
	shows("Ada")
	if err := h.runner(nil).RetryLetter(t.Context(), letters()[0]); !errors.Is(err, store.ErrRefused) || len(letters()) != 1 {
		t.Fatal(err, letters())
	}
	app(`set press {"PK":"LOG","SK":"1"} {"pad":null}`)
	if err := h.runner(nil).RetryLetter(t.Context(), letters()[0]); err != nil || len(letters()) != 0 {
		t.Fatal(err, letters())
	}
	shows(long)

	// Refused again, and over when the row followed is gone.
	app(`set press {"PK":"LOG","SK":"1"} {"pad":{"$noise":409000}}`)
	app(`set press {"PK":"AUTHOR#a","SK":"METADATA"} {"name":"` + long + long + long + `"}`)
	if len(letters()) != 1 {
		t.Fatal(letters())
	}
	app(`delete press {"PK":"AUTHOR#a","SK":"METADATA"}`)
	shows("")
	if err := h.runner(nil).RetryLetter(t.Context(), letters()[0]); err != nil || len(letters()) != 0 {
		t.Fatal(err, letters())
	}
	shows("")
}
