package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/soaktest"
	"weir/internal/store"
	"weir/internal/store/dynamodb/dynamodbtest"
	"weir/internal/system"
	"weir/internal/value"
)

// TestBackfillIsKilled kills a backfill at random moments, resumed each time, until it
// comes through: every row has then what it missed and its unique value is claimed
// for it, and each row was read once as far as the count goes.
func TestBackfillIsKilled(t *testing.T) {
	killBackfill(t, t.TempDir(), 2000)
}

func TestBackfillIsKilledOnAWS(t *testing.T) {
	dynamodbtest.Config(t)
	for name, v := range awsWorld() {
		t.Setenv(name, v)
	}
	killBackfill(t, "data", 500)
}

func killBackfill(t *testing.T, dir string, users int) {
	m, err := model.Load("gallery")
	check(t, err)
	withStore(t, dir, m, func(s *system.System) { writeUsers(t, s, users) })
	rng, kills, most := rand.New(rand.NewPCG(21, 22)), 0, soaktest.Count(3, 12)
	var out strings.Builder
	for {
		out.Reset()
		cmd := exec.Command(self(t), "backfill", "gallery", "-o", "json", "--data", dir)
		cmd.Stdout, cmd.Stderr = &out, os.Stderr
		check(t, cmd.Start())
		if kills < most {
			time.AfterFunc(time.Duration(30+rng.IntN(soaktest.Count(60, 250)))*time.Millisecond, func() { cmd.Process.Kill() })
		}
		err := cmd.Wait()
		if err == nil {
			break
		}
		if kills++; kills > most {
			t.Fatal(err)
		}
	}
	var did struct{ Read, Rows, Claims, Shared int }
	check(t, json.Unmarshal([]byte(out.String()), &did))
	if did.Read != users || did.Rows > users || did.Claims > users || did.Shared != 0 {
		t.Errorf("after %d kills: %+v", kills, did)
	}
	withStore(t, dir, m, func(s *system.System) { checkUsers(t, s, users) })
	if kills == 0 {
		t.Error("none was killed")
	}
	t.Logf("%d kills", kills)
}

func writeUsers(t *testing.T, s *system.System, users int) {
	long := strings.Repeat("x", 2000) // so that the rows are several pages
	for i := 0; i < users; i += 100 {
		var ws []store.Write
		for j := i; j < min(i+100, users); j++ {
			row, err := rowOf(s.Models[0].Model, fmt.Appendf(nil, `{"gallery":{"PK":"USER#%d","SK":"METADATA","EntityType":"User","userId":"%[1]d","email":"%[1]d@example.com","bio":%q,"createdAt":"2024-01-01T00:00:00Z","GSI1PK":"USER_EMAIL","GSI1SK":"%[1]d@example.com"}}`, j, long))
			check(t, err)
			ws = append(ws, row)
		}
		out, err := s.Store.Write(t.Context(), ws)
		check(t, err)
		for _, o := range out {
			check(t, o.Err)
		}
	}
}

func checkUsers(t *testing.T, s *system.System, users int) {
	rows := map[string]value.Item{}
	for _, r := range all(t, s, "gallery") {
		if rows[r.Get("email").Text()] = r; r.Get("role").Text() != "user" || r.Get("emailVerified").Kind() != value.Bool {
			t.Errorf("not filled: %v", r.Get("PK"))
		}
	}
	claims := 0
	for _, c := range all(t, s, owntable.TableName) {
		if email, ok := strings.CutPrefix(c.Get(owntable.Partition).Text(), "claim|gallery|User.email|"); ok {
			if claims++; !strings.Contains(c.Get("r").Text(), rows[email].Get("PK").Text()) {
				t.Errorf("%s is claimed for %v", email, c.Get("r"))
			}
		}
	}
	if len(rows) != users || claims != users {
		t.Errorf("%d rows and %d claims of %d", len(rows), claims, users)
	}
}

func all(t *testing.T, s *system.System, table string) (rows []value.Item) {
	for q := (store.Query{Table: table}); ; {
		page, err := s.Store.Query(t.Context(), q)
		check(t, err)
		rows = append(rows, page.Rows...)
		if q.After = page.Next; q.After == nil {
			return rows
		}
	}
}

func withStore(t *testing.T, dir string, m *model.Model, do func(*system.System)) {
	t.Helper()
	s, err := openWorld(dir, m)
	check(t, err)
	do(s)
	check(t, s.Close())
}

// self is the test program under the name that makes it the program itself.
func self(t *testing.T) string {
	t.Helper()
	path, err := os.Executable()
	check(t, err)
	link := filepath.Join(t.TempDir(), "ingest")
	check(t, os.Symlink(path, link))
	return link
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
