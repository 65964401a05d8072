package drivers

import "testing"

// TestPlaces: each way to say where rows and documents are has one driver of each.
func TestPlaces(t *testing.T) {
	for _, c := range []struct {
		at           Place
		store, index int // in the lists; -1 is none
		dir          string
	}{
		{Place{Data: "d"}, 1, 1, "d"},
		{Place{Data: "d", OpenSearch: "u"}, 1, 0, "d"},
		{Place{Data: "d", AWS: true}, 0, -1, ""},
		{Place{Data: "d", AWS: true, OpenSearch: "u"}, 0, 0, ""},
		{Place{}, 1, -1, ""},
	} {
		index := (*Index)(nil)
		if c.index >= 0 {
			index = &indexes[c.index]
		}
		if c.at.Store() != &stores[c.store] || c.at.Index() != index || c.at.Dir() != c.dir {
			t.Errorf("%+v: another driver than expected, in %q", c.at, c.at.Dir())
		}
		if shared := c.at.Store().Shared(); shared != (c.at.AWS) || shared != (c.at.Store().Deployer != nil) {
			t.Errorf("%+v: shared is %v", c.at, shared)
		}
	}
}
