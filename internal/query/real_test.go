package query

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/projections/document"
	"weir/internal/search"
	searchembedded "weir/internal/search/embedded"
	"weir/internal/store"
	storeembedded "weir/internal/store/embedded"
)

// newRealWorld is a world on the embedded store and index. Rows are put into a
// fake first, for the helpers; settle takes them over.
func newRealWorld(t *testing.T, m *model.Model) *world {
	t.Helper()
	s, err := storeembedded.Open("data", tablesOf(m), storeembedded.Options{FS: vfs.NewMem(), Now: atNoon, Logger: slog.New(slog.NewTextHandler(io.Discard, nil))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return newWorldOn(t, m, s)
}

func atNoon() time.Time { return noon }

// tablesOf are a model's tables and our own.
func tablesOf(m *model.Model) []store.Table {
	tables := []store.Table{owntable.Table()}
	for _, tab := range m.Tables {
		tables = append(tables, tab.Table)
	}
	return tables
}

// newWorldOn is a world on a store, and on the embedded index.
func newWorldOn(t *testing.T, m *model.Model, s store.Store) *world {
	t.Helper()
	w, now := newWorld(t, m, 0), atNoon
	var schemas []search.Schema
	for _, sr := range m.Searches {
		sc := search.Schema{Name: document.Index(m, sr)}
		for _, f := range sr.Filters {
			sc.Filters = append(sc.Filters, f.Name)
		}
		for _, f := range sr.Sorts {
			sc.Sorts = append(sc.Sorts, f.Name)
		}
		schemas = append(schemas, sc)
	}
	ix, err := searchembedded.Open("", schemas, searchembedded.Options{InMemory: true, Now: now})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ix.Close() })
	secret, err := LoadSecret(context.Background(), s)
	if err != nil {
		t.Fatal(err)
	}
	w.store = s
	if w.engine, err = New(Config{Model: m, Store: s, Search: ix, Now: now, Secret: secret}); err != nil {
		t.Fatal(err)
	}
	return w
}

// settle writes what was put into the store and the index, unless these are the fakes.
func (w *world) settle() {
	w.Helper()
	if w.store == store.Store(w.fake) {
		return
	}
	ctx := context.Background()
	for table, rows := range w.fake.rows {
		for _, row := range rows {
			k, _ := w.fake.tables[table].KeyOf(row)
			out, err := w.store.Write(ctx, []store.Write{{Ref: store.Ref{Table: table, Key: k}, Put: row}})
			if err != nil || out[0].Err != nil {
				w.Fatal(err, out)
			}
		}
	}
	if len(w.ids.docs) == 0 {
		return
	}
	errs, err := w.engine.Search.Apply(ctx, w.ids.docs)
	if err = errors.Join(append(errs, err)...); err != nil {
		w.Fatal(err)
	}
}

// The embedded drivers page to the same rows as the ones in memory.
func TestPagingOnTheEmbeddedDrivers(t *testing.T) {
	m := parseModel(t, shopModel)
	for seed := range 4 {
		w := newRealWorld(t, m)
		w.fill(crowd.Example(seed * 7))
		w.settle()
		kind := mustEngine(t, Config{Model: m, Store: w.fake, Search: w.ids})
		for _, p := range paged {
			if p.query == "search-products" && p.given != "q=com maker=b1 stars=2 sort=at" {
				continue // scores are a driver's own
			}
			want := rowTexts(ask(t, kind, p.query, params(p.given), 0))
			for _, limit := range []int{0, 1, 3} {
				if got := rowTexts(ask(t, w.engine, p.query, params(p.given), limit)); got != want {
					t.Errorf("seed %d: %s %s by %d:\n got %s\nwant %s", seed, p.query, p.given, limit, got, want)
				}
			}
		}
		all := rowTexts(ask(t, w.engine, "search-products", params("q=common"), 0))
		if got := rowTexts(ask(t, w.engine, "search-products", params("q=common"), 2)); got != all {
			t.Errorf("search by 2:\n got %s\nwant %s", got, all)
		}
	}
}

func TestGallery(t *testing.T) {
	w := newRealWorld(t, loadModel(t, "gallery"))
	day := func(n int) string { return fmt.Sprintf("2025-10-%02dT08:00:00.000Z", n) }
	for i, public := range []string{"true", "false", "true"} {
		id := fmt.Sprint("a", i)
		w.put("Album", "id", id, "title", "Holiday "+id, "tags", []string{"Crète", "sea"}, "isPublic", public, "createdBy", []string{"ann", "bob", "ann"}[i], "createdAt", day(9-i), "weir", 7)
		for _, media := range []string{"m1", "m" + fmt.Sprint(i)} {
			w.put("AlbumMedia", "albumId", id, "mediaId", media, "addedAt", day(10+i))
		}
	}
	for i := range 3 {
		w.put("Media", "id", fmt.Sprint("m", i), "filename", "f", "originalFilename", fmt.Sprintf("Beach %d.jpg", i), "createdBy", "ann", "createdAt", day(i+1))
	}
	w.put("OldMedia", "albumId", "a0", "mediaId", "old", "filename", "f", "id", "old")
	w.put("AdminUser", "adminId", "x", "username", "root", "passwordHash", "HASH", "salt", "SALT")
	w.put("User", "userId", "u1", "email", "u@x.org", "username", "uno", "googleId", "g1", "passwordHash", "HASH", "salt", "SALT")
	w.put("AdminSession", "sessionId", "s1", "adminId", "x", "expiresAt", "2025-11-13T11:00:00.000Z")
	w.put("AdminSession", "sessionId", "s2", "adminId", "x", "expiresAt", "2025-11-13T13:00:00.000Z")
	w.put("UserSession", "sessionId", "s3", "userId", "u1", "expiresAt", "2025-11-13T11:00:00.000Z")
	w.put("EmailVerificationToken", "token", "t1", "userId", "u1", "expiresAt", "2025-11-13T11:00:00.000Z")
	w.put("EmailVerificationToken", "token", "t2", "userId", "u1", "expiresAt", "2025-11-13T13:00:00.000Z")
	for _, x := range []string{"like m1", "like m2", "bookmark m1"} {
		var typ, media string
		fmt.Sscan(x, &typ, &media)
		w.put("UserInteraction", "userId", "u1", "mediaId", media, "interactionType", typ)
	}
	w.settle()

	w.want("album", "albumId=a0", "Holiday a0 true 0", "title", "isPublic", "mediaCount")
	w.want("albums", "", "a0,a1,a2", "id")
	w.want("albums-by-creator", "createdBy=ann", "a2,a0", "id")
	w.want("public-albums", "isPublic=true", "a0,a2", "id")
	w.want("public-albums", "isPublic=false", "a1 false", "id", "isPublic")
	w.want("media", "mediaId=m1", "0 0", "likeCount", "bookmarkCount")
	w.want("album-media", "albumId=a0", "m0,m1", "mediaId")
	w.want("media-albums", "mediaId=m1", "a0,a1,a2", "albumId")
	w.want("media-by-creator", "createdBy=ann", "m0,m1,m2", "id")
	w.want("public-media", "", "m0,m1,m2", "id")
	w.want("album-media-by-date", "", "a0 m0,a0 m1,a1 m1,a2 m1,a2 m2", "albumId", "mediaId")
	w.want("admin-by-username", "username=root", "x null null", "adminId", "passwordHash", "salt")
	w.want("session", "sessionId=s1", "")
	w.want("session", "sessionId=s2", "s2", "sessionId")
	w.want("expired-sessions", "before=2025-11-13T12:00:00Z", "s1", "sessionId")
	w.want("user", "userId=u1", "uno null null", "username", "passwordHash", "salt")
	w.want("user-by-email", "email=u@x.org", "u1", "userId")
	w.want("user-by-google", "googleId=g1", "u1", "userId")
	w.want("user-by-username", "username=uno", "u1", "userId")
	w.want("user-session", "sessionId=s3", "")
	w.want("expired-user-sessions", "before=2025-11-13T12:00:00Z", "s3", "sessionId")
	w.want("verification-token", "token=t1", "")
	w.want("verification-token", "token=t2", "t2", "token")
	w.want("user-interactions", "userId=u1", "bookmark m1,like m1,like m2", "interactionType", "mediaId")
	w.want("user-interactions", "userId=u1 type=like", "like m1,like m2", "interactionType", "mediaId")
	w.want("media-interactions", "mediaId=m1", "bookmark,like", "interactionType")
	w.want("media-interactions", "mediaId=m1 type=bookmark", "bookmark", "interactionType")
	w.want("search-albums", "q=crete sort=-createdAt", "a0,a2", "id")
	w.want("search-albums", "q=holidya sort=createdAt", "a2,a0", "id")
	w.want("search-albums", "q=crete createdBy=bob", "")
	w.want("search-media", "q=beach sort=createdAt", "m0,m1,m2", "id")
	w.asked()
}

// asked fails for a query of the model that the test did not ask.
func (w *world) asked() {
	for _, q := range w.model.Queries {
		if !w.done[q.Name] {
			w.Errorf("%s was not asked", q.Name)
		}
	}
}

func TestWardrobe(t *testing.T) {
	w := newRealWorld(t, loadModel(t, "wardrobe"))
	day := func(n int) string { return fmt.Sprintf("2025-10-%02dT08:00:00.000Z", n) }
	for i, season := range []string{"summer", "winter", "summer"} {
		w.put("Item", "itemId", fmt.Sprint("i", i), "UserId", "u#1", "Name", fmt.Sprint("Blue dress ", i), "Category", []string{"dresses", "coats"}[i%2], "Season", season,
			"IsPublic", false, "CreatedAt", day(i+1), "UpdatedAt", day(i+1))
	}
	w.put("Item", "itemId", "i9", "UserId", "u", "Name", "Blue coat", "Category", "coats", "CreatedAt", day(5), "UpdatedAt", day(5), "IsPublic", true)
	w.put("Share", "ItemId", "i0", "UserId", "u#1", "SharedAt", day(7), "Platform", "web")
	w.put("Idempotency", "UserId", "u", "IdempotencyKey", "k1", "ItemId", "i9", "TTL", int(noon.Unix())+5)
	w.put("Idempotency", "UserId", "u", "IdempotencyKey", "k2", "ItemId", "i9", "TTL", int(noon.Unix())-5)
	w.settle()

	w.want("item", "itemId=i0", "Blue dress 0 0", "Name", "SharedCount")
	w.want("user-items", "userId=u#1", "i2,i1,i0", "ItemId")
	w.want("user-items", "userId=u", "i9", "ItemId")
	w.want("user-items", "userId=u%231", "")
	w.want("user-items", "userId=u#1 category=dresses", "i2,i0", "ItemId")
	w.want("user-items-by-season", "userId=u#1 season=summer", "i2,i0", "ItemId")
	w.want("user-items-by-season", "userId=u season=1#SEASON#summer", "")
	w.want("idempotency", "userId=u key=k1", "i9", "ItemId")
	w.want("idempotency", "userId=u key=k2", "")
	w.want("user-activities", "userId=u#1", "ItemShared i0,ItemCreated i2,ItemCreated i1,ItemCreated i0", "ActivityType", "ItemId")
	w.want("user-activities", "userId=u#1 type=ItemShared", "ItemShared i0", "ActivityType", "ItemId")
	w.want("user-activities", "userId=u#1 type=Item", "")
	w.want("search-items", "q=blue sort=CreatedAt", "Blue dress 0,Blue dress 1,Blue dress 2,Blue coat", "Name")
	w.want("search-items", "q=blue userId=u", "Blue coat", "Name")
	w.want("search-items", "q=drss userId=u#1 sort=-CreatedAt", "Blue dress 2,Blue dress 1,Blue dress 0", "Name")
	w.asked()
}

func TestSecretOnTheEmbeddedStore(t *testing.T) {
	w := newRealWorld(t, parseModel(t, shopModel))
	again, err := LoadSecret(context.Background(), w.store)
	if err != nil || !bytes.Equal(again, w.engine.Secret) {
		t.Error("the secret is another one", err)
	}
	w.store.Close()
	if _, err := w.engine.Run(context.Background(), "shelves", nil, Page{}); !errors.Is(err, store.ErrClosed) {
		t.Errorf("a closed store answers %v", err)
	}
}
