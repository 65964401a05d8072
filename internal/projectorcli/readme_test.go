package projectorcli

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"weir/internal/failtest"
	"weir/internal/soaktest"
	"weir/internal/store/dynamodb/dynamodbtest"
)

// TestReadme follows each page that a newcomer types from: it writes the files that stand
// there with a name, types what stands behind a $ in console blocks, and compares what is
// printed. A line of … stands for any lines. TestExistingTableOnDynamoDB does so with console blocks
// that are named dynamodb.
func TestReadme(t *testing.T) {
	soaktest.Calm(t)
	pages, err := filepath.Glob("../../examples/*/README.md")
	if err != nil || len(pages) == 0 {
		t.Fatalf("no examples: %v", err)
	}
	for _, page := range append(pages, "../../README.md", "../../docs/guide/tutorial.md", "../../docs/guide/model.md", "../../docs/guide/cost.md") {
		page := strings.TrimPrefix(page, "../../")
		t.Run(page, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			for _, name := range []string{"testdata", "examples"} {
				of, err := filepath.Abs("../../" + name)
				failtest.On(t, err)
				failtest.On(t, os.Symlink(of, filepath.Join(dir, name)))
			}
			typePage(t, "../../"+page, dir, "")
		})
	}
}

// TestHowTo follows each section of the page of models by itself: it writes the section's files,
// writes the rows, derives what follows from them, and compares what the queries print. The model
// has no warnings, and verify finds nothing.
func TestHowTo(t *testing.T) {
	soaktest.Calm(t)
	text, err := os.ReadFile("../../docs/guide/how-to.md")
	failtest.On(t, err)
	sections := strings.Split(string(text), "\n## ")[1:]
	if len(sections) < 19 {
		t.Errorf("the page has %d sections", len(sections))
	}
	for _, section := range sections {
		title, _, _ := strings.Cut(section, "\n")
		t.Run(title, func(t *testing.T) {
			t.Parallel()
			dir, models := t.TempDir(), ""
			failtest.On(t, os.WriteFile(filepath.Join(dir, "none.jsonl"), nil, 0o644))
			failtest.On(t, os.WriteFile(filepath.Join(dir, "page.md"), []byte(section), 0o644))
			for _, block := range blocks.FindAllStringSubmatch(section, -1) {
				if block[2] != "" {
					failtest.On(t, os.WriteFile(filepath.Join(dir, block[2]), []byte(block[3]), 0o644))
				}
				if block[1] == "yaml" {
					models += block[2]
				}
			}
			typeLine(t, dir, "projector lint --strict "+models)
			typeLine(t, dir, "ingest put "+models+" rows.jsonl")
			typeLine(t, dir, "projector replay "+models+" none.jsonl")
			typePage(t, filepath.Join(dir, "page.md"), dir, "")
			typeLine(t, dir, "projector replay "+models+" none.jsonl")
			if got := typeLine(t, dir, "projector verify "+models); !strings.HasSuffix(got, ", 0 differ") {
				t.Errorf("verify: %s", got)
			}
		})
	}
}

// TestCasesOfHowTo: all models of the page, which have every kind, derive the same by all ways in which records come; the feed of
// Inbox, in which the order matters, is left out of one.
func TestCasesOfHowTo(t *testing.T) {
	soaktest.Calm(t)
	if got := typeLine(t, "../..", "projector test docs/guide/how-to.md"); got != "25 cases, 0 failed" {
		t.Error(got)
	}
}

// TestExistingTableOnDynamoDB types what lifecycle.md says of a first build, of README's model. Its table has 1,020 rows, whose
// stream was switched on after they were written, and which an application goes on writing.
func TestExistingTableOnDynamoDB(t *testing.T) {
	cfg, env := localAWS(t)
	setEnv(t, env)
	db, table := sdk.NewFromConfig(cfg), aws.String("my-gallery")
	dynamodbtest.MakeTable(t, db, *table, nil)
	put := func(attrs ...string) {
		row := map[string]types.AttributeValue{}
		for i := 0; i < len(attrs); i += 2 {
			row[attrs[i]] = &types.AttributeValueMemberS{Value: attrs[i+1]}
		}
		if _, err := db.PutItem(t.Context(), &sdk.PutItemInput{TableName: table, Item: row}); err != nil {
			t.Fatal(err)
		}
	}
	picture := func(album string, i int) {
		id := fmt.Sprint("p", i)
		put("PK", "ALBUM#"+album, "SK", "PICTURE#"+id, "EntityType", "Picture", "albumId", album, "pictureId", id)
	}
	for a := range 20 {
		album := fmt.Sprint("album-", a)
		put("PK", "ALBUM#"+album, "SK", "METADATA", "EntityType", "Album", "title", "Album "+fmt.Sprint(a))
		for i := range 50 {
			picture(album, i)
		}
	}
	dynamodbtest.SwitchStream(t, db, *table, types.StreamViewTypeNewAndOldImages)
	picture("album-7", 50)
	picture("album-7", 51)
	dir := t.TempDir()
	typeLine(t, ".", "cat ../../README.md ../../docs/guide/lifecycle.md >"+dir+"/page.md")
	typePage(t, dir+"/page.md", dir, "dynamodb")
}

var blocks = regexp.MustCompile("(?ms)^```(\\w+) ?([\\w.]*)\n(.*?)^```$")

// typePage does what a page says, in a directory: the console blocks with a name, "" for those
// without.
func typePage(t *testing.T, page, dir, consoles string) {
	text, err := os.ReadFile(page)
	failtest.On(t, err)
	typed := 0
	for _, block := range blocks.FindAllStringSubmatch(string(text), -1) {
		kind, name, body := block[1], block[2], block[3]
		switch {
		case kind == "console" && name != consoles:
		case name != "" && kind != "console":
			failtest.On(t, os.WriteFile(filepath.Join(dir, name), []byte(body), 0o644))
		case kind == "console":
			for _, part := range strings.Split("\n"+body, "\n$ ")[1:] {
				line, want, _ := strings.Cut(part, "\n")
				typed++
				if got := typeLine(t, dir, line); !printed(want).MatchString(got) {
					t.Errorf("$ %s\nprints\n%s\nthe page says\n%s", line, got, want)
				}
			}
		}
	}
	if typed == 0 {
		t.Error("the page has no console blocks")
	}
}

var (
	moments = regexp.MustCompile(`20\d\d-\d\d-\d\d \d\d:\d\d`)
	checked = regexp.MustCompile(`(?m)^\d+ derived values checked`)
	took    = regexp.MustCompile(`in \d+\.\d s`)
	paced   = regexp.MustCompile(`(?m)^\d+ [a-z ]+, \d+/s(, .* left)?\n`)
)

// printed matches what a page says that a command prints, at any time. How many values verify checks
// depends on how records came in batches: the ledger of a row that came and went may not be there.
func printed(want string) *regexp.Regexp {
	want = checked.ReplaceAllLiteralString(want, "N derived values checked")
	text := moments.ReplaceAllLiteralString(regexp.QuoteMeta(strings.TrimSuffix(want, "\n")), `20\d\d-\d\d-\d\d \d\d:\d\d`)
	text = strings.Replace(text, "N derived values checked", `\d+ derived values checked`, 1)
	return regexp.MustCompile(`^` + strings.ReplaceAll(text, "\n  …", `(\n.*)+`) + `$`)
}

// typeLine runs a line of shell and gives what a person sees, times as 0.0 s, without the lines of progress that it
// shows after ten seconds on a busy machine.
func typeLine(t *testing.T, dir, line string) string {
	t.Helper()
	cmd := exec.Command("sh", "-c", line)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("$ %s: %v", line, err)
	}
	text := paced.ReplaceAllLiteralString(string(out), "")
	return took.ReplaceAllString(strings.TrimSuffix(text, "\n"), "in 0.0 s")
}
