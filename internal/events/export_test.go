package events

import (
	"context"
	"crypto/md5"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"weir/internal/failtest"
)

// exportOf writes an export as it lies in S3, with items of these names in files, and gives
// the folder of all exports.
func exportOf(t *testing.T, root, id string, incremental, sums bool, files ...[]string) string {
	t.Helper()
	const prefix = "some/prefix/AWSDynamoDB/"
	dir, data := filepath.Join(root, id), filepath.Join(root, id, "data")
	key := prefix + id + "/data/"
	if incremental {
		data, key = filepath.Join(root, "data"), prefix+"data/"
	}
	for _, d := range []string{dir, data} {
		failtest.On(t, os.MkdirAll(d, 0o755))
	}
	write := func(name, text string) {
		failtest.On(t, os.WriteFile(name, []byte(text), 0o600))
	}
	list, all := "", 0
	for n, names := range files {
		text := ""
		for _, name := range names {
			if incremental {
				text += fmt.Sprintf(`{"Metadata":{"WriteTimestampMicros":{"N":"1700000000000000"}},"Keys":{"PK":{"S":%q}},"NewImage":{"PK":{"S":%q}}}`+"\n", name, name)
			} else {
				text += fmt.Sprintf(`{"Item":{"PK":{"S":%q}}}`+"\n", name)
			}
		}
		text = gzipped(t, text)
		file := fmt.Sprintf("%s-%d.json.gz", id, n)
		write(filepath.Join(data, file), text)
		sum := ""
		if sums {
			m := md5.Sum([]byte(text))
			sum = fmt.Sprintf(`"md5Checksum":%q,`, base64.StdEncoding.EncodeToString(m[:]))
		}
		list += fmt.Sprintf(`{"itemCount":%d,%s"etag":"x-1","dataFileS3Key":"%s%s"}`+"\n", len(names), sum, key, file)
		all += len(names)
	}
	write(filepath.Join(dir, "manifest-files.json"), list)
	write(filepath.Join(dir, "manifest-files.checksum"), "x")
	write(filepath.Join(dir, "manifest-summary.json"), fmt.Sprintf(
		`{"version":"2020-06-30","exportArn":"arn:aws:dynamodb:eu-west-1:1:table/t/export/%s","manifestFilesS3Key":"%s%s/manifest-files.json","itemCount":%d,"outputFormat":"DYNAMODB_JSON"}`, id, prefix, id, all))
	write(filepath.Join(dir, "manifest-summary.md5"), "x")
	write(filepath.Join(dir, "_started"), "")
	return root
}

// within are all files of a folder, in order.
func within(t *testing.T, root string) (paths []string) {
	t.Helper()
	err := filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			paths = append(paths, p)
		}
		return err
	})
	failtest.On(t, err)
	slices.Sort(paths)
	return paths
}

// itemsOf are the keys of all that some paths hold.
func itemsOf(paths ...string) (keys string, err error) {
	files, err := Open(paths...)
	if err != nil {
		return "", err
	}
	var out []string
	for batch, err := range files.Batches(context.Background()) {
		for _, e := range batch {
			if e.Bad != nil {
				out = append(out, "bad")
			} else if key := e.Record.New.Get("PK").Text(); key != "" {
				out = append(out, key)
			}
		}
		if err != nil {
			return strings.Join(out, " "), err
		}
	}
	return strings.Join(out, " "), nil
}

// TestExport: an export is read as it lies in S3, whichever of its files are named.
func TestExport(t *testing.T) {
	full := exportOf(t, t.TempDir(), "0001-full", false, true, []string{"a", "b"}, []string{"c"})
	parts := t.TempDir()
	exportOf(t, parts, "0001-inc", true, true, []string{"d"})
	exportOf(t, parts, "0002-inc", true, false, []string{"e", "f"}, []string{"g"})
	for name, c := range map[string]struct {
		paths []string
		want  string
	}{
		"the folder":        {within(t, full), "a b c"},
		"its summary":       {[]string{filepath.Join(full, "0001-full", "manifest-summary.json")}, "a b c"},
		"its list, twice":   {[]string{filepath.Join(full, "0001-full", "manifest-files.json"), filepath.Join(full, "0001-full", "manifest-files.json")}, "a b c"},
		"a data file alone": {within(t, filepath.Join(full, "0001-full", "data"))[1:], "c"},
		"incremental ones":  {within(t, parts), "d e f g"},
		"one of them":       {within(t, filepath.Join(parts, "0002-inc")), "e f g"},
		"all":               {append(within(t, parts), within(t, full)...), "d e f g a b c"},
	} {
		if got, err := itemsOf(c.paths...); err != nil || got != c.want {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}

// TestExportInPart: an export of which something is missing or is not as it was written is
// an error that says what.
func TestExportInPart(t *testing.T) {
	file := func(root string, names ...string) string {
		return filepath.Join(append([]string{root, "0001"}, names...)...)
	}
	rewrite := func(name string, change func(string) string) {
		b, err := os.ReadFile(name)
		if err == nil {
			err = os.WriteFile(name, []byte(change(string(b))), 0o600)
		}
		failtest.On(t, err)
	}
	for name, c := range map[string]struct {
		sums bool
		harm func(root string)
		says string
	}{
		"a data file is missing": {true, func(r string) { os.Remove(file(r, "data", "0001-1.json.gz")) }, "1 of its 2 data files are missing, the first is"},
		"the list is missing":    {true, func(r string) { os.Remove(file(r, "manifest-files.json")) }, "manifest-files.json is missing"},
		"the list is short": {true, func(r string) {
			rewrite(file(r, "manifest-files.json"), func(s string) string { return s[:strings.Index(s, "\n")+1] })
		}, "its files have 2 items, the export has 3"},
		"the list is cut": {true, func(r string) { rewrite(file(r, "manifest-files.json"), func(s string) string { return s[:len(s)-9] }) }, "line 2 cannot be read"},
		"the summary is cut": {true, func(r string) {
			rewrite(file(r, "manifest-summary.json"), func(s string) string { return s[:len(s)-9] })
		}, "cannot be read"},
		"a data file is another": {true, func(r string) {
			rewrite(file(r, "data", "0001-1.json.gz"), func(string) string { return `{"Item":{"PK":{"S":"x"}}}` })
		}, "its MD5 is"},
		"a data file is short": {false, func(r string) {
			rewrite(file(r, "data", "0001-0.json.gz"), func(string) string { return `{"Item":{"PK":{"S":"x"}}}` })
		}, "it has 1 items, and 2 in the manifest"},
		"a data file is cut amid": {true, func(r string) {
			rewrite(file(r, "data", "0001-0.json.gz"), func(s string) string { return s[:len(s)-5] })
		}, "its MD5 is"},
		"the list is another file": {true, func(r string) {
			rewrite(file(r, "manifest-files.json"), func(string) string { return streamRecord(1) })
		}, "line 1 names no file"},
		"it is in another format": {true, func(r string) {
			rewrite(file(r, "manifest-summary.json"), func(s string) string { return strings.Replace(s, "DYNAMODB_JSON", "ION", 1) })
		}, "export the table in the format DYNAMODB_JSON"},
		"a data file is missing, 2": {false, func(r string) { os.Remove(file(r, "data", "0001-0.json.gz")) }, "copy them from S3"},
	} {
		root := exportOf(t, t.TempDir(), "0001", false, c.sums, []string{"a", "b"}, []string{"c"})
		c.harm(root)
		got, err := itemsOf(within(t, root)...)
		if err == nil || !errors.Is(err, ErrExport) && !errors.Is(err, ErrNoRecords) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}
