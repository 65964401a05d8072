package main

import (
	"fmt"
	"math/rand/v2"
	"time"

	"weir/internal/events"
	"weir/internal/model"
	"weir/internal/store"
	"weir/internal/value"
)

// workload is a recording, and the rows that its records count towards.
type workload struct {
	name    string
	attr    string // the count
	rows    []value.Item
	records []events.Record
	target  []int // which row each record counts towards
}

// countTargets returns how many rows all batches of a size touch. A row counts once for each batch.
func (w *workload) countTargets(batch int) (n int) {
	for at := 0; at < len(w.target); at += batch {
		seen := map[int]bool{}
		for _, t := range w.target[at:min(at+batch, len(w.target))] {
			seen[t] = true
		}
		n += len(seen)
	}
	return n
}

const places = 2000 // albums, and media

// popularityDraws returns a generator that draws things as people choose them: the nth most popular
// thing with a weight of 1/n^1.1.
func popularityDraws(seed uint64) (*rand.Rand, *rand.Zipf) {
	r := rand.New(rand.NewPCG(seed, 0x77656972))
	return r, rand.NewZipf(r, 1.1, 1, places-1)
}

var start = time.Date(2025, 3, 1, 8, 0, 0, 0, time.UTC)

// uploadsWorkload returns a workload of pictures that are put into albums. At any time six people
// upload, each on average a dozen pictures into one album, popular or not.
func uploadsWorkload(m *model.Model, n int) workload {
	w := workload{name: "uploads", attr: "mediaCount"}
	for i := range places {
		w.rows = append(w.rows, albumRow(i))
	}
	r, zipf := popularityDraws(1)
	var people [6]int
	for p := range people {
		people[p] = int(zipf.Uint64())
	}
	for i := range n {
		p := r.IntN(len(people))
		if r.IntN(12) == 0 {
			people[p] = int(zipf.Uint64())
		}
		w.insertRecord(m, i, people[p], stringItem("PK", fmt.Sprintf("ALBUM#a%d", people[p]), "SK", fmt.Sprintf("MEDIA#m%d", i),
			"EntityType", "AlbumMedia", "albumId", fmt.Sprintf("a%d", people[p]), "mediaId", fmt.Sprintf("m%d", i), "addedAt", timeStamp(i)))
	}
	return w
}

// likesWorkload returns a workload of likes for pictures, popular or not. No person likes two pictures
// in a row.
func likesWorkload(m *model.Model, n int) workload {
	w := workload{name: "likes", attr: "likeCount"}
	for i := range places {
		w.rows = append(w.rows, mediaRow(i))
	}
	_, zipf := popularityDraws(2)
	for i := range n {
		t := int(zipf.Uint64())
		w.insertRecord(m, i, t, stringItem("PK", fmt.Sprintf("USER#u%d", i), "SK", fmt.Sprintf("INTERACTION#like#m%d", t),
			"EntityType", "UserInteraction", "userId", fmt.Sprintf("u%d", i), "interactionType", "like", "mediaId", fmt.Sprintf("m%d", t), "createdAt", timeStamp(i)))
	}
	return w
}

func timeStamp(i int) string {
	return start.Add(time.Duration(i) * 40 * time.Millisecond).Format("2006-01-02T15:04:05.000Z")
}

// stringItem returns an item from alternating names and strings.
func stringItem(pairs ...string) value.Item {
	var attrs []value.Attr
	for i := 0; i < len(pairs); i += 2 {
		attrs = append(attrs, value.Attr{Name: pairs[i], Value: value.OfString(pairs[i+1])})
	}
	return value.NewItem(attrs...)
}

func (w *workload) insertRecord(m *model.Model, i, target int, row value.Item) {
	t := m.Tables[0]
	key, _ := t.KeyOf(row)
	w.records = append(w.records, events.Record{
		Table: t.Name, Keys: t.Item(key), New: row, Position: events.PositionOf(uint64(i + 1)), Time: start.Add(time.Duration(i) * 40 * time.Millisecond),
	})
	w.target = append(w.target, target)
}

func albumRow(i int) value.Item {
	id := fmt.Sprintf("a%d", i)
	return stringItem("PK", "ALBUM#"+id, "SK", "METADATA", "EntityType", "Album", "id", id, "title", "An album of some evening by the sea",
		"isPublic", "true", "createdBy", "u-7", "createdByType", "user", "createdAt", timeStamp(i), "updatedAt", timeStamp(i),
		"GSI1PK", "ALBUM", "GSI1SK", timeStamp(i)+"#"+id, "GSI4PK", "ALBUM_BY_CREATOR", "GSI4SK", "u-7#"+timeStamp(i)+"#"+id)
}

func mediaRow(i int) value.Item {
	id := fmt.Sprintf("m%d", i)
	return stringItem("PK", "MEDIA#"+id, "SK", "METADATA", "EntityType", "Media", "id", id, "filename", "IMG_2043.jpeg", "mimeType", "image/jpeg",
		"status", "uploaded", "createdBy", "u-7", "createdByType", "user", "createdAt", timeStamp(i), "updatedAt", timeStamp(i),
		"GSI1PK", "MEDIA_BY_CREATOR", "GSI1SK", "u-7#"+timeStamp(i)+"#"+id, "GSI2PK", "MEDIA_ID", "GSI2SK", id)
}

func refOf(m *model.Model, row value.Item) store.Ref {
	key, _ := m.Tables[0].KeyOf(row)
	return store.Ref{Table: m.Tables[0].Name, Key: key}
}
