package verify

import (
	"maps"
	"slices"
	"strings"

	"weir/internal/book"
	"weir/internal/projections"
	"weir/internal/value"
)

// The list of followers is state, and verify recounts it. The rows that followers got are
// history, and verify does not recount them.

func (v *Verify) follower(j projections.Join) string {
	ref := book.Follower(book.Followers(v.Model.Name, j.List), j.Row)
	return j.List + "\x00" + ref.Key.Sort.Text()
}

// listed compares a follower on a list with the row that follows.
func (v *Verify) listed(list string, row value.Item) {
	at := row.Get(book.Sort).Text()
	f := projections.FollowerFrom(row)
	if at == "-" || !f.Here() {
		return
	}
	v.Checked++
	name := list + "\x00" + at
	what := What{Kind: Listed, List: list, Name: at}
	switch j, ok := v.joins[name]; {
	case !ok:
		v.differs("followers", list, "no follower in "+at, "a follower", what)
	case !value.EqualItems(j.Fields, f.Fields):
		v.differs("followers", rowText(v.Model, j.Row), text(value.OfMap(j.Fields)), text(value.OfMap(f.Fields)), what)
	}
	delete(v.joins, name)
}

// unlisted yields the followers that are on no list.
func (v *Verify) unlisted() {
	for _, name := range slices.Sorted(maps.Keys(v.joins)) {
		j := v.joins[name]
		_, at, _ := strings.Cut(name, "\x00")
		v.differs("followers", rowText(v.Model, j.Row), "in the list "+j.List, "nowhere", What{Kind: Listed, List: j.List, Name: at})
	}
}
