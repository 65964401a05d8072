package main

import (
	"math/rand/v2"
	"strconv"
	"time"
)

// teller tells the changes of rows, record after record, at times and with sequence
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
	tableName() string
	appendKey(b []byte) []byte // its key attributes, in DynamoDB's JSON, without braces
	appendRow(b []byte) []byte // the other attributes
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

func (album) tableName() string { return "gallery" }
func (media) tableName() string { return "gallery" }
func (link) tableName() string  { return "gallery" }
func (like) tableName() string  { return "gallery" }

func (l link) recordNumber() uint64 { return uint64(l.album)<<32 | uint64(l.media) }

type like struct {
	user, media uint32
	bookmark    bool
	at          int64
}

func (l like) recordNumber() uint64 {
	id := uint64(l.user)<<33 | uint64(l.media)<<1
	if l.bookmark {
		id |= 1
	}
	return id
}

// appendChange appends the record of a row's change; nil is no row.
func (w *teller) appendChange(b []byte, old, new image) []byte {
	w.count++
	event, of := "MODIFY", new
	if old == nil {
		event = "INSERT"
	} else if new == nil {
		event, of = "REMOVE", old
	}
	b = append(appendHead(b, w.count, w.count+1, event, w.now/1000), `,"Keys":{`...)
	b = of.appendKey(b)
	if new != nil {
		b = append(b, `},"NewImage":{`...)
		b = new.appendRow(append(new.appendKey(b), ','))
	}
	if old != nil {
		b = append(b, `},"OldImage":{`...)
		b = old.appendRow(append(old.appendKey(b), ','))
	}
	b = append(b, `},"SequenceNumber":"`...)
	b = strconv.AppendUint(append(b, "44215"...), 1_000_000_000_000_000+37*w.count, 10) // 21 digits
	b = append(b, `","SizeBytes":700,"StreamViewType":"NEW_AND_OLD_IMAGES"}`...)
	if w.arn {
		b = appendARN(b, of.tableName())
	}
	return append(b, '}')
}

// appendHead appends a record up to the time of its change, in seconds. Its id is made of two numbers.
func appendHead(b []byte, id, more uint64, event string, at int64) []byte {
	b = appendHex(appendHex(append(b, `{"eventID":"`...), mixBits(id)), mixBits(more))
	b = append(append(b, `","eventName":"`...), event...)
	b = append(b, `","eventVersion":"1.1","eventSource":"aws:dynamodb","awsRegion":"eu-west-1","dynamodb":{"ApproximateCreationDateTime":`...)
	return strconv.AppendInt(b, at, 10)
}

func appendARN(b []byte, table string) []byte {
	b = append(b, `,"eventSourceARN":"arn:aws:dynamodb:eu-west-1:123456789012:table/`...)
	return append(append(b, table...), `/stream/2025-03-01T00:00:00.000"`...)
}

func (a album) appendKey(b []byte) []byte {
	return appendString(appendString(b, "SK", "METADATA"), ",PK", "ALBUM#", randomID('a', a.n))
}

func (a album) appendRow(b []byte) []byte {
	id, created := randomID('a', a.n), timeStamp(a.created)
	b = appendString(b, "title", titleWords(a.n, a.renamed, 4))
	b = appendString(b, ",isPublic", strconv.FormatBool(a.public))
	b = appendString(b, ",createdBy", randomID('u', a.by))
	b = appendString(b, ",GSI1PK", "ALBUM")
	b = appendString(b, ",GSI4SK", randomID('u', a.by), "#", created, "#", id)
	b = append(b, `,"mediaCount":{"N":"0"},"tags":{"L":[`...)
	b = append(append(append(b, `{"S":"`...), vocabularyWord(mixBits(uint64(a.n)))...), `"},{"S":"`...)
	b = append(append(b, vocabularyWord(mixBits(uint64(a.n)+7))...), `"}]}`...)
	b = appendString(b, ",EntityType", "Album")
	b = append(b, `,"thumbnailUrls":{"M":{`...)
	b = append(appendString(b, "small", "https://cdn.example.com/s/", id), `}}`...)
	b = appendString(b, ",id", id)
	b = appendString(b, ",GSI4PK", "ALBUM_BY_CREATOR")
	b = appendString(b, ",GSI1SK", created, "#", id)
	b = appendString(b, ",updatedAt", timeStamp(a.updated))
	b = appendString(b, ",coverImageUrl", "https://cdn.example.com/c/", randomID('c', a.n+uint32(a.cover)))
	b = appendString(b, ",createdAt", created)
	return appendString(b, ",createdByType", "user")
}

func (m media) appendKey(b []byte) []byte {
	return appendString(appendString(b, "SK", "METADATA"), ",PK", "MEDIA#", randomID('m', m.n))
}

func (m media) appendRow(b []byte) []byte {
	id, created, h := randomID('m', m.n), timeStamp(m.created), mixBits(uint64(m.n))
	b = appendString(b, "filename", id, ".jpg")
	b = appendString(b, ",originalFilename", titleWords(m.n, m.renamed, 2), ".jpg")
	b = appendString(b, ",status", [...]string{"pending", "processed", "featured", "archived"}[m.step%4])
	b = appendString(b, ",createdBy", randomID('u', m.by))
	b = appendString(b, ",GSI2PK", "MEDIA_ID")
	b = appendNumber(b, ",size", 20_000+h%9_000_000)
	b = appendNumber(b, ",width", 640+h>>8%5000)
	b = appendNumber(b, ",height", 480+h>>16%4000)
	b = append(b, `,"metadata":{"M":{`...)
	b = append(appendNumber(appendNumber(b, "iso", 100<<(h%6)), ",steps", uint64(m.step)), `}}`...)
	b = appendString(b, ",EntityType", "Media")
	b = appendString(b, ",GSI1SK", randomID('u', m.by), "#", created, "#", id)
	b = appendString(b, ",url", "https://cdn.example.com/o/", id)
	b = appendString(b, ",GSI1PK", "MEDIA_BY_CREATOR")
	b = appendString(b, ",id", id)
	b = appendString(b, ",GSI2SK", id)
	b = appendString(b, ",updatedAt", timeStamp(m.updated))
	b = appendString(b, ",mimeType", "image/jpeg")
	return appendString(b, ",createdAt", created)
}

func (l link) appendKey(b []byte) []byte {
	return appendString(appendString(b, "SK", "MEDIA#", randomID('m', l.media)), ",PK", "ALBUM#", randomID('a', l.album))
}

func (l link) appendRow(b []byte) []byte {
	a, m, at := randomID('a', l.album), randomID('m', l.media), timeStamp(l.at)
	b = appendString(b, "mediaId", m)
	b = appendString(b, ",addedAt", at)
	b = appendString(b, ",GSI1PK", "MEDIA#", m)
	b = appendString(b, ",GSI2SK", at, "#", a, "#", m)
	b = appendString(b, ",albumId", a)
	b = appendString(b, ",EntityType", "AlbumMedia")
	b = appendString(b, ",GSI2PK", "ALBUM_MEDIA_BY_DATE")
	b = appendString(b, ",GSI1SK", "ALBUM#", a, "#", at)
	return appendString(b, ",addedBy", randomID('u', l.by))
}

func (l like) kind() string {
	if l.bookmark {
		return "bookmark"
	}
	return "like"
}

func (l like) appendKey(b []byte) []byte {
	b = appendString(b, "SK", "INTERACTION#", l.kind(), "#", randomID('m', l.media))
	return appendString(b, ",PK", "USER#", randomID('u', l.user))
}

func (l like) appendRow(b []byte) []byte {
	u, m := randomID('u', l.user), randomID('m', l.media)
	b = appendString(b, "userId", u)
	b = appendString(b, ",mediaId", m)
	b = appendString(b, ",GSI1SK", l.kind(), "#", u)
	b = appendString(b, ",EntityType", "UserInteraction")
	b = appendString(b, ",GSI1PK", "MEDIA_INTERACTION#", m)
	b = appendString(b, ",interactionType", l.kind())
	return appendString(b, ",createdAt", timeStamp(l.at))
}

// appendString appends a string attribute; a name that begins with a comma follows another.
func appendString(b []byte, name string, parts ...string) []byte {
	b = append(appendName(b, name), `{"S":"`...)
	for _, p := range parts {
		b = append(b, p...)
	}
	return append(b, `"}`...)
}

func appendNumber(b []byte, name string, n uint64) []byte {
	b = append(appendName(b, name), `{"N":"`...)
	return append(strconv.AppendUint(b, n, 10), `"}`...)
}

func appendName(b []byte, name string) []byte {
	if name[0] == ',' {
		b, name = append(b, ','), name[1:]
	}
	return append(append(append(b, '"'), name...), `":`...)
}

// randomID is the id of thing n of a kind, without order, as random ids are.
func randomID(kind byte, n uint32) string {
	var buf [18]byte
	b := append(buf[:0], kind, '-')
	return string(appendHex(b, mixBits(uint64(kind)<<32|uint64(n))))
}

func timeStamp(ms int64) string { return time.UnixMilli(ms).UTC().Format("2006-01-02T15:04:05.000Z") }

func appendHex(b []byte, n uint64) []byte {
	for shift := 60; shift >= 0; shift -= 4 {
		b = append(b, "0123456789abcdef"[n>>shift&15])
	}
	return b
}

// mixBits spreads n over 64 bits.
func mixBits(n uint64) uint64 {
	n += 0x9e3779b97f4a7c15
	n = (n ^ n>>30) * 0xbf58476d1ce4e5b9
	n = (n ^ n>>27) * 0x94d049bb133111eb
	return n ^ n>>31
}

// titleWords is a title: of n words, another one for each version.
func titleWords(of uint32, version uint16, n int) string {
	var b []byte
	for i := range n {
		if i > 0 {
			b = append(b, ' ')
		}
		b = append(b, vocabularyWord(mixBits(uint64(of)<<24|uint64(version)<<4|uint64(i)))...)
	}
	return string(b)
}

var syllables = [...]string{"ba", "cor", "den", "é", "fli", "gar", "hou", "in", "ja", "kel", "lo", "mer", "nu", "or", "pa", "qui",
	"ras", "sol", "ta", "ur", "ven", "wa", "xi", "yor", "zel", "bru", "cha", "dro", "est", "fen", "gli", "hem"}

// vocabularyWord is one of a vocabulary of some thousand, a few of them frequent.
func vocabularyWord(h uint64) string {
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
