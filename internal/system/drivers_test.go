package system

import (
	"testing"

	"weir/internal/memory"
)

// TestPlaces: each way to say where rows and documents are has one driver of each.
func TestPlaces(t *testing.T) {
	here, there := embeddedIndex.Files(1), served
	for _, c := range []struct {
		at    Place
		store string
		index memory.Need // none is no index
		dir   string
	}{
		{Place{Data: "d"}, "d", here, "d"},
		{Place{Data: "d", OpenSearch: "u"}, "d", there, "d"},
		{Place{Data: "d", AWS: true}, "DynamoDB", memory.Need{}, ""},
		{Place{Data: "d", AWS: true, OpenSearch: "u"}, "DynamoDB", there, ""},
		{Place{}, "", memory.Need{}, ""},
	} {
		index := memory.Need{}
		if ix := c.at.Index(); ix != nil {
			index = ix.Files(1)
		}
		if name := c.at.Store().Name(c.at); name != c.store || index != c.index || c.at.Dir() != c.dir {
			t.Errorf("%+v: rows in %q, documents with %+v, in %q", c.at, name, index, c.at.Dir())
		}
		if shared := c.at.Store().Shared(); shared != c.at.AWS || shared != c.at.Store().Deploys() {
			t.Errorf("%+v: shared is %v", c.at, shared)
		}
	}
}
