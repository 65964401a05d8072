package owntable_test

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"weir/internal/events"
	"weir/internal/owntable"
	"weir/internal/store"
	"weir/internal/value"
)

func at(n uint64) events.Position { return events.PositionOf(n) }

func off(n uint64) events.Position { return at(n) }

var soon = value.OfInt(1_700_000_000)

// TestFacts: the newest report wins, a withdrawn fact stays as one until it expires, and a
// a correction writes only over what it read.
func TestFacts(t *testing.T) {
	o := ownTable(t)
	ref := owntable.Fact("m", "Round.status|r", owntable.ReachedFact("open", "row"))
	told := owntable.ToldMember(value.OfString("ann"))
	if !o.writes(owntable.Member{Position: at(2), Says: told}.Keep(ref, soon)) || o.writes(owntable.Member{Position: at(1)}.Keep(ref, soon)) {
		t.Error("an older report replaced a newer one")
	}
	is := owntable.MemberFrom(o.row(ref))
	if is.Position != at(2) || !value.EqualItems(is.Says, told) || o.row(ref).Has(owntable.Expiry) {
		t.Errorf("stored as %v", o.row(ref))
	}
	if list, name, ok := owntable.FactOf("m", o.row(ref)); !ok || list != "Round.status|r" || name != is.Name {
		t.Errorf("it is fact %s of %s", name, list)
	}
	if !o.writes(owntable.Member{Position: at(3)}.Keep(ref, soon)) || owntable.MemberFrom(o.row(ref)).Says != nil || !o.row(ref).Has(owntable.Expiry) {
		t.Errorf("a withdrawn fact is %v", o.row(ref))
	}
	if o.writes(is.Replace(ref, owntable.Member{Position: at(2), Says: told}, soon)) {
		t.Error("a correction wrote over what it had not read")
	}
	empty := owntable.Member{Position: at(4), Says: value.Item{}}
	if !o.writes(empty.Keep(ref, soon)) || owntable.MemberFrom(o.row(ref)).Says == nil {
		t.Error("a fact that tells nothing is read as withdrawn")
	}
	if spoilt := owntable.MemberFrom(o.row(ref).With(value.Attr{Name: "v", Value: value.OfString("spoilt")})); spoilt.Says == nil || spoilt.Raw.Text() != "spoilt" {
		t.Error("a fact that another writer spoilt is read as withdrawn")
	}
	if o.writes(owntable.MemberFrom(nil).Replace(ref, empty, soon)) {
		t.Error("a fact that exists was read as missing, and replaced")
	}
}

// TestFollowedValues: the newest value wins; the last value of a row that is gone expires
// only if no follower began to keep it.
func TestFollowedValues(t *testing.T) {
	o := ownTable(t)
	ref := owntable.Followed("m", "User.name", rowRef("1"))
	keyed := owntable.KeyedRow{Table: "T", Key: keyOf("1")}
	v := owntable.FollowedRow{Value: value.OfString("Ann"), Position: at(2), Row: keyed}
	if !o.writes(v.Keep(ref)) || o.writes(owntable.FollowedRow{Position: at(1), Row: keyed}.Keep(ref)) {
		t.Error("an older value replaced a newer one")
	}
	is := owntable.FollowedFrom(o.row(ref))
	if is.Value.Text() != "Ann" || is.Position != at(2) || is.Gone || is.Row.Table != "T" || !value.EqualItems(is.Row.Key, keyOf("1")) || !is.Existed() {
		t.Errorf("stored as %+v", is)
	}
	if o.writes(owntable.KeepLast(ref)) || o.writes(owntable.ExpireGone(ref, at(2), soon)) {
		t.Error("the value of a row that exists is handled as a last value")
	}
	v.Gone, v.Position = true, at(3)
	if !o.writes(v.Keep(ref)) {
		t.Fatal("not kept")
	}
	was := owntable.FollowedFrom(o.row(ref))
	if !o.writes(owntable.KeepLast(ref)) || o.writes(was.ExpireLast(ref, soon)) {
		t.Error("a last value expires although a follower began to keep it")
	}
	if !o.writes(owntable.FollowedFrom(o.row(ref)).ExpireLast(ref, soon)) || !owntable.FollowedFrom(o.row(ref)).Expires {
		t.Error("a last value that no row follows does not expire")
	}
	if !o.writes(owntable.KeepLastFrom(ref, time.Now().UnixMicro())) || owntable.FollowedFrom(o.row(ref)).Expires {
		t.Error("a last value that a row keeps expires")
	}
	if o.writes(is.Replace(ref, v)) || o.writes(is.Raise(ref, at(9))) {
		t.Error("a correction wrote over what it had not read")
	}
	follower := owntable.Follower(ref, "userName", rowRef("9"))
	if !o.writes(owntable.FollowerRow{Row: keyed, Attr: "userName"}.Write(follower)) {
		t.Fatal("no follower")
	}
	if f := owntable.FollowerFrom(o.row(follower)); f.Attr != "userName" || f.Row.Table != "T" || !value.EqualItems(f.Row.Key, keyOf("1")) {
		t.Errorf("the follower is %+v", f)
	}
	followers := owntable.EntriesJob(ref)
	if page, err := o.Query(t.Context(), followers.Page(10)); err != nil || len(page.Rows) != 1 || !owntable.IsEntry(page.Rows[0].Get(owntable.Sort).Text()) {
		t.Errorf("the list has %v, %v", page.Rows, err)
	}
}

// TestSubscribers: a moment is given once, a shard's changes keep theirs until they are
// sent, and a subscriber's row is written only over what was read.
func TestSubscribers(t *testing.T) {
	o, clock := ownTable(t), time.Unix(1_700_000_000, 0)
	list := owntable.Subscribers("m", owntable.SubscriberList("rule", []string{"a"}))
	none := owntable.ListFrom(o.row(list))
	if !o.writes(none.BeginMoment(list, "s1", off(2), off(5), nil, clock, soon)) || o.writes(none.BeginMoment(list, "s2", off(1), off(1), nil, clock, soon)) {
		t.Error("one moment was given twice")
	}
	is := owntable.ListFrom(o.row(list))
	if first, last, moment := is.ShardProgress("s1"); is.Moment() != clock.UnixMicro() || first != off(2) || last != off(5) || moment != is.Moment() || !o.row(list).Has(owntable.Expiry) {
		t.Errorf("the list is %v", o.row(list))
	}
	if !o.writes(is.BeginMoment(list, "s2", off(1), off(1), nil, clock, soon)) {
		t.Fatal("no second moment")
	}
	if o.writes(owntable.EndMoment(list, "s1", off(4))) || !o.writes(owntable.EndMoment(list, "s1", off(5))) {
		t.Error("the moment of a shard ends when its last change is sent")
	}
	if !o.writes(owntable.ListFrom(o.row(list)).BeginMoment(list, "s2", off(2), off(2), []string{"s1"}, clock, soon)) {
		t.Fatal("no third moment")
	}
	if !o.writes(owntable.ListFrom(o.row(list)).BeginMoment(list, "s3", off(1), off(1), nil, clock, soon)) || !o.writes(owntable.ListFrom(o.row(list)).BeginMoment(list, "s2", off(3), off(3), []string{"s3"}, clock, soon)) {
		t.Fatal("no moment after a removal")
	}
	if first, last, moment := owntable.ListFrom(o.row(list)).ShardProgress("s3"); !first.IsZero() || !last.IsZero() || moment != 0 {
		t.Errorf("of a shard whose frontier has passed it there is %v", o.row(list))
	}
	if is := owntable.ListFrom(o.row(list)); o.row(list).Has(owntable.PositionOf("s1")) || !o.row(list).Has(owntable.PositionOf("s2")) || !is.Pruned() {
		t.Errorf("after a removal of s1: %v", o.row(list))
	}

	ref := owntable.Subscriber(list, rowRef("1"))
	s, never := owntable.SubscriberRow{Member: owntable.Member{Position: at(2), Says: keyOf("1")}, Since: 3, Spans: []owntable.Span{{Since: 1, Until: 2}}}, owntable.SubscriberRow{}
	if !o.writes(never.Replace(ref, s, soon)) || o.writes(never.Replace(ref, s, soon)) {
		t.Error("a subscriber is written once over what was read")
	}
	was := owntable.SubscriberFrom(o.row(ref))
	if was.Position != at(2) || was.Since != 3 || len(was.Spans) != 1 || was.Spans[0] != s.Spans[0] || !value.EqualItems(was.Says, keyOf("1")) || o.row(ref).Has(owntable.Expiry) {
		t.Errorf("stored as %+v", was)
	}
	s.Says, s.Position = nil, at(3)
	if !o.writes(was.Replace(ref, s, soon)) || o.writes(was.Replace(ref, s, soon)) || owntable.SubscriberFrom(o.row(ref)).Says != nil || !o.row(ref).Has(owntable.Expiry) {
		t.Errorf("a subscriber that left is %v", o.row(ref))
	}
}

// TestNodes: a node comes back as it was stored, and is written only over the version that
// was read.
func TestNodes(t *testing.T) {
	o := ownTable(t)
	ref := owntable.Node("m", rowRef("1"), "a")
	n := owntable.NodeFrom("a", nil)
	n.Version, n.Counts["x"] = value.OfInt(1), value.OfInt(2)
	n.Saw("s1", "a", off(3))
	n.Saw("s1", "ab", off(5))
	if !o.writes(n.Put(ref, value.Value{})) || o.writes(n.Put(ref, value.Value{})) || o.writes(owntable.DropNode(ref, value.OfInt(7))) {
		t.Error("a node was written over another version")
	}
	is := owntable.NodeFrom(owntable.PathOf(o.row(ref)), o.row(ref))
	if is.Path != "a" || !value.Equal(is.Version, n.Version) || !value.Equal(is.Counts["x"], value.OfInt(2)) || is.Seen["s1"]["a"] != off(3) || is.Seen["s1"]["ab"] != off(5) {
		t.Errorf("stored as %+v", is)
	}
	is.Inner, is.Version = true, value.OfInt(2)
	if !o.writes(is.Put(ref, value.OfInt(1))) || !owntable.NodeFrom("a", o.row(ref)).Inner || !o.writes(owntable.DropNode(ref, value.OfInt(2))) {
		t.Error("an inner node is not stored")
	}
}

// TestJobs: a job comes back as it was left, and one that was begun again or moved does not go on from where it was read.
func TestJobs(t *testing.T) {
	o := ownTable(t)
	now := time.UnixMicro(1_700_000_000_000_000)
	targets, values, notify := owntable.TargetsJob("m", "L|x"), owntable.EntriesJob(owntable.Followed("m", "User.name", rowRef("1"))), owntable.EntriesJob(owntable.Subscribers("m", "l"))
	values.Position = at(2)
	notify.Rule, notify.Source, notify.Fields, notify.Position, notify.Moment = "R", "S", keyOf("1"), at(3), 4
	jobs := []owntable.Job{targets, notify, values} // in the order of their lists
	read := func() (out []owntable.Job) {
		page, err := o.Query(t.Context(), store.Query{Table: owntable.TableName, Partition: value.OfString(owntable.Jobs("m"))})
		for _, row := range page.Rows {
			j, unread := owntable.DecodeJob(row)
			err = errors.Join(err, unread)
			out = append(out, j)
		}
		if err != nil {
			t.Fatal(err)
		}
		slices.SortFunc(out, func(a, b owntable.Job) int { return strings.Compare(a.List, b.List) })
		return out
	}
	for i := range jobs {
		if !o.writes(jobs[i].Begin("m", now)) {
			t.Fatal("a job did not begin")
		}
		if jobs[i].Position.IsZero() == !o.writes(jobs[i].Begin("m", now)) {
			t.Error("a job of a change begins once, any other each time")
		}
	}
	is := read()
	if len(is) != 3 {
		t.Fatalf("%d jobs", len(is))
	}
	for i, want := range jobs {
		same := value.EqualItems(is[i].Fields, want.Fields)
		is[i].Fields, want.Fields, want.Moves = nil, nil, is[i].Moves
		if !same || !reflect.DeepEqual(is[i], want) {
			t.Errorf("%+v was left, and is %+v", want, is[i])
		}
	}
	values.Position = at(3)
	if !o.writes(targets.Begin("m", now)) || o.writes(is[0].Move("m", "d")) || !o.writes(values.Begin("m", now)) || o.writes(is[2].Move("m", "")) {
		t.Error("a job that was begun again goes on where it was")
	}
	if !o.writes(is[1].Move("m", "d")) || o.writes(is[1].Move("m", "e")) {
		t.Error("a job went on twice from one place")
	}
	for _, j := range read() {
		if !o.writes(j.Move("m", "")) {
			t.Error("a job did not end")
		}
	}
	if left := read(); len(left) > 0 {
		t.Errorf("left: %+v", left)
	}
}

// TestUnserved: the record of a follower's dead letter comes back as it was kept.
func TestUnserved(t *testing.T) {
	if a, l := owntable.UnservedFrom(owntable.UnservedRecord("name", "follow|m|x")); a != "name" || l != "follow|m|x" {
		t.Errorf("it is attribute %s of %s", a, l)
	}
}
