package main

import (
	"bufio"
	"fmt"
	"os"
)

// world generates the stream of a gallery in use: people upload pictures, put them into
// albums, like, edit and delete them. One album and one picture are hot. The stream is the
// same for the same seed, and it is consistent: each old image is the latest new image of its
// key.
//
// Everything grows with the number of records, so that recordings of any length
// have the same shape.
type world struct {
	teller

	lastAlbum, lastMedia uint32
	albums               []album
	media                []media
	links                []link
	likes                []like
	linked, liked        map[uint64]bool
}

func newWorld(seed uint64) *world {
	return &world{teller: newTeller(seed), linked: map[uint64]bool{}, liked: map[uint64]bool{}}
}

// deeds lists the acts of people, and how often they happen.
var deeds = []struct {
	weight int
	do     func(*world, []byte) []byte
}{
	{14, (*world).appendUpload}, {3, (*world).newAlbum}, {16, (*world).appendLink}, {14, (*world).appendLike},
	{26, (*world).editMedia}, {18, (*world).editAlbum},
	{3, (*world).appendUnlink}, {3, (*world).appendUnlike}, {2, (*world).deleteMedia}, {1, (*world).deleteAlbum},
}

// appendNext appends the next record.
func (w *world) appendNext(b []byte) []byte {
	w.now += 1 + w.rand.Int64N(400)
	if len(w.albums) < 4 {
		return w.newAlbum(b)
	}
	if len(w.media) < 4 {
		return w.appendUpload(b)
	}
	n := w.rand.IntN(100)
	for _, d := range deeds {
		if n -= d.weight; n < 0 {
			return d.do(w, b)
		}
	}
	panic("the weights do not come to 100")
}

// nextRow appends the record of a row that is new, so that a recording has as many rows as records.
func (w *world) nextRow(b []byte) []byte {
	w.now += 1 + w.rand.Int64N(400)
	n := w.rand.IntN(47)
	if len(w.albums) < 4 || n < 3 {
		return w.newAlbum(b)
	}
	if len(w.media) < 4 || n < 17 {
		return w.appendUpload(b)
	}
	if n < 33 {
		return w.appendLink(b)
	}
	return w.appendLike(b)
}

func (w *world) newAlbum(b []byte) []byte {
	w.lastAlbum++
	a := album{n: w.lastAlbum, by: w.rand.Uint32N(w.lastAlbum/4 + 20), public: w.rand.IntN(10) < 7, created: w.now, updated: w.now}
	w.albums = append(w.albums, a)
	return w.appendChange(b, nil, a)
}

func (w *world) appendUpload(b []byte) []byte {
	w.lastMedia++
	m := media{n: w.lastMedia, by: w.rand.Uint32N(w.lastAlbum/4 + 20), created: w.now, updated: w.now}
	w.media = append(w.media, m)
	return w.appendChange(b, nil, m)
}

// drawHot draws one of n things: one time in ten the first, which is never deleted; one time in
// ten any; otherwise one of the newest, because most changes happen to new things.
func (w *world) drawHot(n int) int {
	switch w.rand.IntN(10) {
	case 0:
		return 0
	case 1:
		return w.rand.IntN(n)
	}
	return w.drawRecent(n)
}

// drawRecent draws one of n things, at an average distance of recentDistance from the end.
func (w *world) drawRecent(n int) int {
	return max(0, n-1-int(w.rand.ExpFloat64()*recentDistance))
}

const recentDistance = 1000

func (w *world) appendLink(b []byte) []byte {
	a, m := w.albums[w.drawHot(len(w.albums))], w.media[w.drawRecent(len(w.media))]
	l := link{album: a.n, media: m.n, by: a.by, at: w.now}
	if w.linked[l.recordNumber()] {
		return w.appendUpload(b)
	}
	w.linked[l.recordNumber()] = true
	w.links = append(w.links, l)
	return w.appendChange(b, nil, l)
}

func (w *world) appendLike(b []byte) []byte {
	m := w.media[w.drawHot(len(w.media))]
	l := like{user: w.rand.Uint32N(w.lastMedia + 1000), media: m.n, bookmark: w.rand.IntN(3) == 0, at: w.now}
	if w.liked[l.recordNumber()] {
		return w.appendUpload(b)
	}
	w.liked[l.recordNumber()] = true
	w.likes = append(w.likes, l)
	return w.appendChange(b, nil, l)
}

func (w *world) appendUnlink(b []byte) []byte {
	if len(w.links) == 0 {
		return w.appendLink(b)
	}
	l := takeElement(&w.links, w.rand.IntN(len(w.links)))
	delete(w.linked, l.recordNumber())
	return w.appendChange(b, l, nil)
}

func (w *world) appendUnlike(b []byte) []byte {
	if len(w.likes) == 0 {
		return w.appendLike(b)
	}
	l := takeElement(&w.likes, w.rand.IntN(len(w.likes)))
	delete(w.liked, l.recordNumber())
	return w.appendChange(b, l, nil)
}

// deleteMedia deletes a picture but not the rows that refer to it, like a gallery without
// transactions.
func (w *world) deleteMedia(b []byte) []byte {
	return w.appendChange(b, takeElement(&w.media, 1+w.rand.IntN(len(w.media)-1)), nil)
}

func (w *world) deleteAlbum(b []byte) []byte {
	return w.appendChange(b, takeElement(&w.albums, 1+w.rand.IntN(len(w.albums)-1)), nil)
}

func (w *world) editMedia(b []byte) []byte {
	m := &w.media[w.drawHot(len(w.media))]
	old := *m
	m.updated = w.now
	if w.rand.IntN(8) == 0 {
		m.renamed++
	} else {
		m.step++
	}
	return w.appendChange(b, old, *m)
}

func (w *world) editAlbum(b []byte) []byte {
	a := &w.albums[w.drawHot(len(w.albums))]
	old := *a
	a.updated = w.now
	switch w.rand.IntN(8) {
	case 0, 1:
		a.renamed++
	case 2:
		a.public = !a.public
	default:
		a.cover++
	}
	return w.appendChange(b, old, *a)
}

// takeElement removes and returns element i of a list. It does not keep the list's order.
func takeElement[T any](from *[]T, i int) T {
	s := *from
	x := s[i]
	s[i] = s[len(s)-1]
	*from = s[:len(s)-1]
	return x
}

// recording is a file of GetRecords pages, one page on each line.
type recording struct {
	model   string
	path    string
	records int
	bytes   int64
}

const pageRecords = 250

// openRecording returns a gallery's recording with a number of records. It reuses one that was
// made before.
func (b *bench) openRecording(records int) (recording, error) {
	return b.recordingOf("gallery", newWorld(1).appendNext, records)
}

// recordingOf makes a recording of the records that next appends.
func (b *bench) recordingOf(model string, next func([]byte) []byte, records int) (recording, error) {
	return b.recordingAt(fmt.Sprintf("%s/%s-%d.jsonl", b.dir, model, records), model, next, records)
}

// recordingAt makes a recording at a path, unless it exists.
func (b *bench) recordingAt(path, model string, next func([]byte) []byte, records int) (recording, error) {
	r := recording{model: model, path: path, records: records}
	if r, ok := b.files[r.path]; ok {
		return r, nil
	}
	b.printProgress("generating a recording of %d records of %s", records, model)
	f, err := os.Create(r.path)
	if err != nil {
		return r, err
	}
	defer f.Close()
	out := bufio.NewWriterSize(f, 1<<20)
	var page []byte
	for done := 0; done < records; {
		n := min(pageRecords, records-done)
		page = append(page[:0], `{"Records":[`...)
		for i := range n {
			if i > 0 {
				page = append(page, ',')
			}
			page = next(page)
		}
		page = append(page, `],"NextShardIterator":"AAAAAAAAAAH5"}`+"\n"...)
		if _, err := out.Write(page); err != nil {
			return r, err
		}
		r.bytes += int64(len(page))
		done += n
	}
	if err := out.Flush(); err != nil {
		return r, err
	}
	b.files[r.path] = r
	return r, nil
}
