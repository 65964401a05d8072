package main

import (
	"math/rand/v2"
	"strconv"
	"time"
)

// teller tells what happens to rows, record after record, at times and with sequence
// numbers that rise.
type teller struct {
	rand  *rand.Rand
	now   int64 // ms
	count uint64
	arn   bool // records say which stream they are from, as Lambda's do
}

func newTeller(seed uint64) teller {
	return teller{rand: rand.New(rand.NewPCG(seed, seed^0x77656972)), now: time.Date(2025, 3, 1, 8, 0, 0, 0, time.UTC).UnixMilli()}
}

// image is a row as it is at one time.
type image interface {
	table() string
	key(b []byte) []byte // its key attributes, in DynamoDB's JSON, without braces
	row(b []byte) []byte // the other attributes
}

type album struct {
	n, by          uint32
	created        int64
	updated        int64
	public         bool
	renamed, cover uint16
}

type media struct {
	n, by         uint32
	created       int64
	updated       int64
	renamed, step uint16
}

type link struct {
	album, media, by uint32
	at               int64
}

func (album) table() string { return "gallery" }
func (media) table() string { return "gallery" }
func (link) table() string  { return "gallery" }
func (like) table() string  { return "gallery" }

func (l link) id() uint64 { return uint64(l.album)<<32 | uint64(l.media) }

type like struct {
	user, media uint32
	bookmark    bool
	at          int64
}

func (l like) id() uint64 {
	id := uint64(l.user)<<33 | uint64(l.media)<<1
	if l.bookmark {
		id |= 1
	}
	return id
}

// change appends the record of a row's change; nil is no row.
func (w *teller) change(b []byte, old, new image) []byte {
	w.count++
	event, of := "MODIFY", new
	switch {
	case old == nil:
		event = "INSERT"
	case new == nil:
		event, of = "REMOVE", old
	}
	b = append(b, `{"eventID":"`...)
	b = hex(hex(b, mix(w.count)), mix(w.count+1))
	b = append(b, `","eventName":"`...)
	b = append(b, event...)
	b = append(b, `","eventVersion":"1.1","eventSource":"aws:dynamodb","awsRegion":"eu-west-1","dynamodb":{"ApproximateCreationDateTime":`...)
	b = strconv.AppendInt(b, w.now/1000, 10)
	b = append(b, `,"Keys":{`...)
	b = of.key(b)
	if new != nil {
		b = append(b, `},"NewImage":{`...)
		b = new.row(append(new.key(b), ','))
	}
	if old != nil {
		b = append(b, `},"OldImage":{`...)
		b = old.row(append(old.key(b), ','))
	}
	b = append(b, `},"SequenceNumber":"`...)
	b = strconv.AppendUint(append(b, "44215"...), 1_000_000_000_000_000+37*w.count, 10) // 21 digits
	b = append(b, `","SizeBytes":700,"StreamViewType":"NEW_AND_OLD_IMAGES"}`...)
	if w.arn {
		b = append(b, `,"eventSourceARN":"arn:aws:dynamodb:eu-west-1:123456789012:table/`...)
		b = append(append(b, of.table()...), `/stream/2025-03-01T00:00:00.000"`...)
	}
	return append(b, '}')
}

func (a album) key(b []byte) []byte {
	return text(text(b, "SK", "METADATA"), ",PK", "ALBUM#", ident('a', a.n))
}

func (a album) row(b []byte) []byte {
	id, created := ident('a', a.n), stamp(a.created)
	b = text(b, "title", words(a.n, a.renamed, 4))
	b = text(b, ",isPublic", strconv.FormatBool(a.public))
	b = text(b, ",createdBy", ident('u', a.by))
	b = text(b, ",GSI1PK", "ALBUM")
	b = text(b, ",GSI4SK", ident('u', a.by), "#", created, "#", id)
	b = append(b, `,"mediaCount":{"N":"0"},"tags":{"L":[`...)
	b = append(append(append(b, `{"S":"`...), word(mix(uint64(a.n)))...), `"},{"S":"`...)
	b = append(append(b, word(mix(uint64(a.n)+7))...), `"}]}`...)
	b = text(b, ",EntityType", "Album")
	b = append(b, `,"thumbnailUrls":{"M":{`...)
	b = append(text(b, "small", "https://cdn.example.com/s/", id), `}}`...)
	b = text(b, ",id", id)
	b = text(b, ",GSI4PK", "ALBUM_BY_CREATOR")
	b = text(b, ",GSI1SK", created, "#", id)
	b = text(b, ",updatedAt", stamp(a.updated))
	b = text(b, ",coverImageUrl", "https://cdn.example.com/c/", ident('c', a.n+uint32(a.cover)))
	b = text(b, ",createdAt", created)
	return text(b, ",createdByType", "user")
}

func (m media) key(b []byte) []byte {
	return text(text(b, "SK", "METADATA"), ",PK", "MEDIA#", ident('m', m.n))
}

func (m media) row(b []byte) []byte {
	id, created, h := ident('m', m.n), stamp(m.created), mix(uint64(m.n))
	b = text(b, "filename", id, ".jpg")
	b = text(b, ",originalFilename", words(m.n, m.renamed, 2), ".jpg")
	b = text(b, ",status", [...]string{"pending", "processed", "featured", "archived"}[m.step%4])
	b = text(b, ",createdBy", ident('u', m.by))
	b = text(b, ",GSI2PK", "MEDIA_ID")
	b = number(b, ",size", 20_000+h%9_000_000)
	b = number(b, ",width", 640+h>>8%5000)
	b = number(b, ",height", 480+h>>16%4000)
	b = append(b, `,"metadata":{"M":{`...)
	b = append(number(number(b, "iso", 100<<(h%6)), ",steps", uint64(m.step)), `}}`...)
	b = text(b, ",EntityType", "Media")
	b = text(b, ",GSI1SK", ident('u', m.by), "#", created, "#", id)
	b = text(b, ",url", "https://cdn.example.com/o/", id)
	b = text(b, ",GSI1PK", "MEDIA_BY_CREATOR")
	b = text(b, ",id", id)
	b = text(b, ",GSI2SK", id)
	b = text(b, ",updatedAt", stamp(m.updated))
	b = text(b, ",mimeType", "image/jpeg")
	return text(b, ",createdAt", created)
}

func (l link) key(b []byte) []byte {
	return text(text(b, "SK", "MEDIA#", ident('m', l.media)), ",PK", "ALBUM#", ident('a', l.album))
}

func (l link) row(b []byte) []byte {
	a, m, at := ident('a', l.album), ident('m', l.media), stamp(l.at)
	b = text(b, "mediaId", m)
	b = text(b, ",addedAt", at)
	b = text(b, ",GSI1PK", "MEDIA#", m)
	b = text(b, ",GSI2SK", at, "#", a, "#", m)
	b = text(b, ",albumId", a)
	b = text(b, ",EntityType", "AlbumMedia")
	b = text(b, ",GSI2PK", "ALBUM_MEDIA_BY_DATE")
	b = text(b, ",GSI1SK", "ALBUM#", a, "#", at)
	return text(b, ",addedBy", ident('u', l.by))
}

func (l like) kind() string {
	if l.bookmark {
		return "bookmark"
	}
	return "like"
}

func (l like) key(b []byte) []byte {
	b = text(b, "SK", "INTERACTION#", l.kind(), "#", ident('m', l.media))
	return text(b, ",PK", "USER#", ident('u', l.user))
}

func (l like) row(b []byte) []byte {
	u, m := ident('u', l.user), ident('m', l.media)
	b = text(b, "userId", u)
	b = text(b, ",mediaId", m)
	b = text(b, ",GSI1SK", l.kind(), "#", u)
	b = text(b, ",EntityType", "UserInteraction")
	b = text(b, ",GSI1PK", "MEDIA_INTERACTION#", m)
	b = text(b, ",interactionType", l.kind())
	return text(b, ",createdAt", stamp(l.at))
}

// text appends a string attribute; a name that begins with a comma follows another.
func text(b []byte, name string, parts ...string) []byte {
	b = append(named(b, name), `{"S":"`...)
	for _, p := range parts {
		b = append(b, p...)
	}
	return append(b, `"}`...)
}

func number(b []byte, name string, n uint64) []byte {
	b = append(named(b, name), `{"N":"`...)
	return append(strconv.AppendUint(b, n, 10), `"}`...)
}

func named(b []byte, name string) []byte {
	if name[0] == ',' {
		b, name = append(b, ','), name[1:]
	}
	return append(append(append(b, '"'), name...), `":`...)
}

// ident is the id of thing n of a kind, without order, as random ids are.
func ident(kind byte, n uint32) string {
	var buf [18]byte
	b := append(buf[:0], kind, '-')
	return string(hex(b, mix(uint64(kind)<<32|uint64(n))))
}

func stamp(ms int64) string { return time.UnixMilli(ms).UTC().Format("2006-01-02T15:04:05.000Z") }

func hex(b []byte, n uint64) []byte {
	for shift := 60; shift >= 0; shift -= 4 {
		b = append(b, "0123456789abcdef"[n>>shift&15])
	}
	return b
}

// mix spreads n over 64 bits.
func mix(n uint64) uint64 {
	n += 0x9e3779b97f4a7c15
	n = (n ^ n>>30) * 0xbf58476d1ce4e5b9
	n = (n ^ n>>27) * 0x94d049bb133111eb
	return n ^ n>>31
}

// words is a title: of n words, another one for each version.
func words(of uint32, version uint16, n int) string {
	var b []byte
	for i := range n {
		if i > 0 {
			b = append(b, ' ')
		}
		b = append(b, word(mix(uint64(of)<<24|uint64(version)<<4|uint64(i)))...)
	}
	return string(b)
}

var syllables = [...]string{"ba", "cor", "den", "é", "fli", "gar", "hou", "in", "ja", "kel", "lo", "mer", "nu", "or", "pa", "qui",
	"ras", "sol", "ta", "ur", "ven", "wa", "xi", "yor", "zel", "bru", "cha", "dro", "est", "fen", "gli", "hem"}

// word is one of a vocabulary of some thousand, a few of them frequent.
func word(h uint64) string {
	n := 2 + h>>60%2
	if h>>40%4 == 0 {
		h %= 64
	}
	s := ""
	for range n {
		s += syllables[h%32]
		h >>= 5
	}
	return s
}
