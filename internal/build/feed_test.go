package build_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"weir/internal/deadletter"
	"weir/internal/owntable"
	"weir/internal/reader"
	"weir/internal/status"
)

// posts is a feed of posts, and copies of them.
const posts = `model: posts
tables: {posts: {key: [PK, SK]}}
entities:
  Post: {where: {kind: post}, key: {PK: "POST#{post}", SK: P}, attributes: {author: string!, at: string!, title: string!}}
  Like: {where: {kind: like}, key: {PK: "POST#{post}", SK: "LIKE#{user}"}, attributes: {}}
  Follower: {where: {kind: follower}, key: {PK: "AUTHOR#{author}", SK: "FOLLOWER#{user}"}, attributes: {nick: string}}
  Entry: {where: {kind: entry}, key: {PK: "INBOX#{user}", SK: "{at}#{post}"}, attributes: {title: string, by: string, nick: string}}
  Copy: {where: {kind: copy}, key: {PK: "BY#{author}", SK: "{at}#{post}"}, attributes: {title: string}}
derive:
  Entry: {row: Post, keep: insert, each: {of: Follower, by: [author]}, set: {user: Follower.user, at: at, post: post, title: title}}
  Copy: {row: Post, set: {author: author, at: at, post: post, title: title}}
`

// feedChanges are changes of posts. Letters says that what cannot be sent before the build is live is kept.
var feedChanges = map[string]struct {
	edit    []string
	builds  []string
	letters bool
}{
	"counter added":       {edit: []string{"derive:\n", "derive:\n  Post.likes: {count: Like}\n"}, builds: []string{"Post"}},
	"copy removed":        {edit: []string{"  Copy: {row: Post, set: {author: author, at: at, post: post, title: title}}\n", ""}},
	"entry has more":      {edit: []string{"post: post, title: title}}\n  Copy", "post: post, title: title, by: author}}\n  Copy"}},
	"fewer are sent":      {edit: []string{"keep: insert,", "keep: insert, where: {title: {exists: true}},"}},
	"subscriber has more": {edit: []string{"user: Follower.user,", "user: Follower.user, nick: Follower.nick,"}, builds: []string{"subscribers/Entry"}, letters: true},
}

// TestFeedGoesOn: the model of a feed is changed while posts are written: each post is in the inbox of each follower,
// at once, or, where the lists of followers are built again, once they are live.
func TestFeedGoesOn(t *testing.T) {
	for name := range feedChanges {
		t.Run(name, func(t *testing.T) { open(t, load(t, posts)).feedGoesOn(name, 300) })
	}
}

// TestFeedGoesOnOnDynamoDB is the same with the counter, and fewer posts.
func TestFeedGoesOnOnDynamoDB(t *testing.T) {
	openOnDynamoDB(t, load(t, posts)).feedGoesOn("counter added", 60)
}

func (f *fixture) feedGoesOn(name string, n int) {
	change := feedChanges[name]
	post := func(i int) {
		f.write("PK", fmt.Sprint("POST#", i), "SK", "P", "kind", "post", "author", "ann", "at", fmt.Sprintf("%04d", i), "title", "t")
	}
	const followers = 3
	for i := range followers {
		f.write("PK", "AUTHOR#ann", "SK", fmt.Sprint("FOLLOWER#", i), "kind", "follower", "nick", "n")
	}
	f.catchUp()
	follow := func() (stop func()) {
		ctx, end := context.WithCancel(f.Context())
		var done sync.WaitGroup
		done.Go(func() {
			follower := reader.Follower{Runner: f.runner(), Source: untrimmed{f.Store}}
			if err := follower.Run(ctx); err != nil && !errors.Is(err, context.Canceled) {
				f.Error(err)
			}
		})
		return func() { end(); done.Wait() }
	}
	stop := follow()
	for i := range n / 3 {
		post(i)
	}
	stop()
	text := strings.Replace(posts, change.edit[0], change.edit[1], 1)
	if text == posts {
		f.Fatal("the model is as it was")
	}
	removed := change.edit[1] == ""
	f.with(load(f.TB, text))
	var writes sync.WaitGroup
	writes.Go(func() {
		for i := n / 3; i < 2*n/3; i++ {
			post(i)
		}
	})
	if removed {
		f.retired("Copy")
	}
	is, err := f.builder().Announce(f.Context()) // begins what needs no build
	f.ok(err)
	if len(is) > 0 {
		f.Errorf("built without being asked for: %v", is)
	}
	if len(change.builds) > 0 {
		f.announced(change.builds...)
	}
	stop = follow()
	writes.Wait()
	f.catchUp() // before the build is live
	waiting := f.dead()
	if change.letters != (len(waiting) > 0) {
		f.Errorf("%d letters before the build is live", len(waiting))
	}
	now, err := status.Of(f.Context(), f.System, f.Models[0])
	f.ok(err)
	for _, d := range now.Derivations {
		if d.Name == "Entry" && d.Unsent != len(waiting) {
			f.Errorf("status says that %d notifications were not sent, want %d", d.Unsent, len(waiting))
		}
	}
	for _, d := range waiting {
		if d.Kind != deadletter.Notification || d.Target != "Entry<Post|ann" {
			f.Errorf("%+v", d)
		}
	}
	var late deadletter.Letter // a batch that began before the build was live keeps its letter only then
	if change.letters {
		late, err = f.runner().DeadByID(f.Context(), waiting[0].ID)
		f.ok(err)
	}
	if len(change.builds) > 0 {
		f.build(owntable.BuildLive, change.builds...)
	}
	if change.letters {
		_, err = f.runner().Letters().Keep(f.Context(), late)
		f.ok(err)
	}
	for i := 2 * n / 3; i < n; i++ {
		post(i)
	}
	stop()
	f.catchUp()
	letters := f.dead()
	if change.letters && len(letters) >= len(waiting) {
		f.Errorf("%d letters waited, and %d do after the build", len(waiting), len(letters))
	}
	inboxes := func() map[string]int {
		got := map[string]int{}
		for _, row := range f.rows(f.table) {
			if row.Get("kind").Text() == "entry" {
				_, id, _ := strings.Cut(row.Get("SK").Text(), "#")
				got["POST#"+id]++
				got["all"]++
			}
		}
		return got
	}
	// A batch that comes again after the lists are live is sent in full, and its letters stay until the builder looks again.
	kept := map[string]bool{}
	for _, d := range letters {
		whole, err := f.runner().DeadByID(f.Context(), d.ID)
		f.ok(err)
		kept[whole.ChangeRecord().New.Get("PK").Text()] = true
	}
	got := inboxes()
	for i := range n {
		if id := fmt.Sprint("POST#", i); got[id] != followers && !kept[id] {
			f.Errorf("%s is in %d inboxes, want %d, and there is no letter about it", id, got[id], followers)
		}
	}
	f.ok(f.builder(change.builds...).HandOver(f.Context()))
	if got := inboxes()["all"]; got != followers*n || len(f.dead()) > 0 {
		f.Errorf("%d entries, want %d; %d letters", got, followers*n, len(f.dead()))
	}
	f.verified()
}
