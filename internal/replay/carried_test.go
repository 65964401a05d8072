package replay

import (
	"testing"

	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/value"
)

// A row that becomes one of no entity does not go on to follow: its marks would have a new value written on it.
func TestCarriedFollowsNoMore(t *testing.T) {
	comment := &model.Entity{Follows: []*model.Follow{{Attr: "author"}}}
	now := value.NewItem(
		value.Attr{Name: "author", Value: value.OfString("Ada")},
		value.Attr{Name: owntable.FollowsAttr("author"), Value: value.OfString("list")},
		value.Attr{Name: owntable.FollowVersion("author"), Value: value.OfInt(1)},
		value.Attr{Name: owntable.Moved, Value: value.OfInt(1)},
	)
	if got := len(carriedAttributes(comment, now)); got != 3 {
		t.Errorf("a comment carries %d attributes, want 3", got)
	}
	if got := carriedAttributes(nil, now); len(got) != 0 {
		t.Errorf("a row of no entity carries %v", got)
	}
}
