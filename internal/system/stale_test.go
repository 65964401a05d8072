package system_test

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/cockroachdb/pebble/v2/vfs"

	"weir/internal/api"
	"weir/internal/failtest"
	"weir/internal/model"
	"weir/internal/query"
	"weir/internal/reader"
	"weir/internal/store"
	"weir/internal/store/dynamodb"
	"weir/internal/store/dynamodb/dynamodbtest"
	"weir/internal/store/embedded"
	"weir/internal/system"
	"weir/internal/value"
)

// switched is a store on which the stream of a table can be switched off; it can still be read.
type switched struct {
	store.Store
	table string
	off   atomic.Bool
}

func (s *switched) Identity(ctx context.Context, table string) (store.Identity, error) {
	is, err := s.Store.Identity(ctx, table)
	if s.off.Load() && table == s.table {
		is.Stream = ""
	}
	return is, err
}

func (s *switched) Shards(ctx context.Context, table string) ([]store.Shard, error) {
	shards, err := s.Store.Shards(ctx, table)
	if s.off.Load() && table == s.table {
		shards = slices.Clone(shards)
		for i := range shards {
			shards[i].Closed = true
		}
	}
	return shards, err
}

// TestAnswersWithoutAStream: answers over HTTP name what is no longer derived from a table whose stream is off, those of searches
// too, as long as it is off. All else is answered without that.
func TestAnswersWithoutAStream(t *testing.T) {
	m, tables := booksAndShelves(t)
	db, err := embedded.Open("store", tables, embedded.Options{FS: vfs.NewMem()})
	failtest.On(t, err)
	t.Cleanup(func() { db.Close() })
	s := &switched{Store: db, table: "books"}
	answersWithoutAStream(t, m, s, func(on bool) { s.off.Store(!on) })
}

// TestAnswersWithoutAStreamOnDynamoDB is the same where DynamoDB says that the stream is off.
func TestAnswersWithoutAStreamOnDynamoDB(t *testing.T) {
	m, tables := booksAndShelves(t)
	cfg := dynamodbtest.Config(t)
	answersWithoutAStream(t, m, dynamodbtest.Open(t, cfg, tables, dynamodb.Options{}), func(on bool) {
		t.Helper()
		spec := &types.StreamSpecification{StreamEnabled: &on}
		if on {
			spec.StreamViewType = types.StreamViewTypeNewAndOldImages
		}
		if _, err := sdk.NewFromConfig(cfg).UpdateTable(t.Context(), &sdk.UpdateTableInput{TableName: aws.String("books"), StreamSpecification: spec}); err != nil {
			t.Fatal(err)
		}
	})
}

func booksAndShelves(t *testing.T) (*model.Model, []store.Table) {
	m, err := model.Parse("library.yaml", []byte(`
model: library
tables: {books: {key: [PK, SK]}, shelves: {key: [PK, SK]}}
entities:
  Book: {table: books, where: {type: Book}, key: {PK: "BOOK#{id}", SK: BOOK}, attributes: {title: string, shelf: string}}
  Shelf: {table: shelves, where: {type: Shelf}, key: {PK: "SHELF#{id}", SK: SHELF}, attributes: {name: string}}
derive:
  Shelf.books: {count: Book, to: {id: shelf}}
search:
  books: {of: Book, text: [title]}
  shelves: {of: Shelf, text: [name]}
queries:
  shelf: {get: Shelf, with: [id]}
  search-books: {search: books}
  search-shelves: {search: shelves}
`))
	failtest.On(t, err)
	tables, err := system.Tables([]*model.Model{m})
	failtest.On(t, err)
	return m, tables
}

func answersWithoutAStream(t *testing.T, m *model.Model, db store.Store, turn func(on bool)) {
	quiet := slog.New(slog.NewTextHandler(io.Discard, nil))
	s, err := system.Over(t.Context(), db, t.TempDir(), []*model.Model{m}, system.Options{Now: time.Now, Log: quiet})
	failtest.On(t, err)
	t.Cleanup(func() { s.Index.Close() })
	failtest.On(t, s.Start(t.Context()))
	failtest.On(t, s.Reach(t.Context(), func(system.Filling) {}))
	handler, err := api.New([]*query.Engine{s.Models[0].Query}, api.Options{Log: quiet})
	failtest.On(t, err)
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() {
		done <- reader.Follow(ctx, s.Models[0].Runner, reader.Options{Lease: time.Second, Poll: 10 * time.Millisecond, List: 20 * time.Millisecond, Log: quiet})
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	put := func(table, pk, kind, attr, v string) {
		t.Helper()
		text := func(name, v string) value.Attr { return value.Attr{Name: name, Value: value.OfString(v)} }
		row := value.NewItem(text("PK", pk), text("SK", kind), text("type", map[string]string{"BOOK": "Book", "SHELF": "Shelf"}[kind]), text(attr, v), text("shelf", "s"))
		key, _ := m.Table(table).KeyOf(row)
		if _, err := db.Write(t.Context(), []store.Write{{Ref: store.Ref{Table: table, Key: key}, Put: row}}); err != nil {
			t.Fatal(err)
		}
	}
	// says waits until a query has as many items, and an answer the header, "" for none.
	says := func(query string, items int, want string) {
		t.Helper()
		for end := time.Now().Add(20 * time.Second); ; time.Sleep(20 * time.Millisecond) {
			res, err := http.Get(server.URL + "/v1/library/" + query)
			failtest.On(t, err)
			var page struct{ Items []json.RawMessage }
			err = json.NewDecoder(res.Body).Decode(&page)
			res.Body.Close()
			is, there := res.Header[api.Unfinished]
			if err == nil && res.StatusCode == http.StatusOK && len(page.Items) == items && (want == "") == !there && (!there || is[0] == want) {
				return
			}
			if time.Now().After(end) {
				t.Fatalf("%s: status %d, %d items, header %q, %v; want %d and %q", query, res.StatusCode, len(page.Items), is, err, items, want)
			}
		}
	}
	put("shelves", "SHELF#s", "SHELF", "name", "novels")
	put("books", "BOOK#1", "BOOK", "title", "first")
	says("search-books?q=first", 1, "")
	says("search-shelves?q=novels", 1, "")
	says("shelf?id=s", 1, "")
	turn(false)
	says("search-books?q=first", 1, "search/books")
	says("shelf?id=s", 1, "Shelf.books")
	says("search-shelves?q=novels", 1, "Shelf.books") // what it shows has the count, and its own table has its stream
	turn(true)
	says("search-books?q=first", 1, "")
	says("shelf?id=s", 1, "")
	put("books", "BOOK#2", "BOOK", "title", "second")
	says("search-books?q=second", 1, "")
}
