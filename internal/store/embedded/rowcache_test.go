package embedded

import (
	"testing"

	"pgregory.net/rapid"
)

// TestRowCache: it answers with what was put last or with nothing, keeps to its
// room, and knows what it holds.
func TestRowCache(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const room = 2000
		var c rowCache
		last := map[string]string{}
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			key := rapid.StringMatching(`[a-d]{1,2}`).Draw(t, "key")
			if rapid.IntRange(0, 5).Draw(t, "drop") == 0 {
				c.drop([]byte(key))
				delete(last, key)
			} else {
				row := rapid.SliceOfN(rapid.Byte(), 0, 600).Draw(t, "row")
				c.put([]byte(key), row, room)
				last[key] = string(row)
			}
			held := 0
			for k, r := range c.rows {
				held += len(k) + rowOverhead + cap(r.stored)
				if got, ok := c.get([]byte(k)); !ok || string(got) != last[k] {
					t.Fatalf("%s: %x, want %x", k, got, last[k])
				}
			}
			if held != c.bytes || held > room {
				t.Fatalf("it holds %d bytes and counts %d, there is room for %d", held, c.bytes, room)
			}
		}
	})
}

func TestRowCacheForgetsWhatIsGone(t *testing.T) {
	var c rowCache
	key := []byte("k")
	c.put(key, []byte("row"), 1000)
	c.put(key, nil, 1000)
	if _, ok := c.get(key); ok || c.bytes != 0 {
		t.Errorf("a deleted row is cached, %d bytes", c.bytes)
	}
	c.put(key, []byte("row"), 1000)
	c.put(key, make([]byte, 900), 1000)
	if _, ok := c.get(key); ok || c.bytes != 0 {
		t.Errorf("the row before a large one is cached, %d bytes", c.bytes)
	}
}
