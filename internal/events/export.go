package events

import (
	"cmp"
	"crypto/md5"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// DynamoDB exports a table to S3 as a folder that is named by the export's id:
//
//	AWSDynamoDB/ID/manifest-summary.json   the table that was exported, and how many items
//	AWSDynamoDB/ID/manifest-files.json     its data files, one object a line
//	AWSDynamoDB/ID/manifest-*.md5, manifest-*.checksum, _started
//	AWSDynamoDB/ID/data/*.json.gz          of a full export
//	AWSDynamoDB/data/*.json.gz             of all incremental exports
//
// A path to such a folder, or to a manifest, stands for the data files that the manifest
// lists.

const (
	// The names of the two manifests.
	summaryFile = "manifest-summary.json"
	listFile    = "manifest-files.json"
)

// ErrExport is wrapped by the errors for an export that is incomplete or damaged.
var ErrExport = errors.New("the export is not whole")

// Export is an export to S3 that has its manifest and all its files. Its entries share one.
type Export struct {
	Name  string // its folder
	Table string // the name that its table had, "" if it does not say
	// Full says that the export has all rows of its table as they were at To. Otherwise it has the rows that changed after
	// From, up to To.
	Full     bool
	From, To time.Time
}

// source is a file to read, with the facts of an export's manifest about it.
type source struct {
	path   string
	md5    string // base64, "" where nothing is said
	items  int64  // below 0 where nothing is said
	export *Export
}

// summary holds the fields that weir reads from a manifest-summary.json.
type summary struct {
	ExportARN    string `json:"exportArn"`
	TableARN     string `json:"tableArn"`
	ManifestKey  string `json:"manifestFilesS3Key"`
	ItemCount    *int64 `json:"itemCount"`
	OutputFormat string `json:"outputFormat"`
	ExportType   string `json:"exportType"`
	ExportTime   string `json:"exportTime"`
	exportWindow
	// Spec has the window as the API and the command line write it, the summary itself as DynamoDB does.
	Spec exportWindow `json:"incrementalExportSpecification"`
}

// exportWindow is the time that an incremental export covers.
type exportWindow struct {
	From string `json:"exportFromTime"`
	To   string `json:"exportToTime"`
}

// exportOf is the summary of the export in a folder; nil if it does not say its time.
func (s *summary) exportOf(dir string) (*Export, error) {
	e := &Export{Name: dir, Table: tableIn(s.TableARN), Full: s.ExportType != "INCREMENTAL_EXPORT"}
	from, to := "", s.ExportTime
	if !e.Full {
		from, to = cmp.Or(s.From, s.Spec.From), cmp.Or(s.To, s.Spec.To)
	}
	if to == "" {
		return nil, nil
	}
	var err, errFrom error
	e.To, err = parseISO(to)
	if from != "" {
		e.From, errFrom = parseISO(from)
	}
	if err != nil || errFrom != nil {
		return nil, fmt.Errorf("%s: %w: its time cannot be read; copy it from S3 again", filepath.Join(dir, summaryFile), ErrExport)
	}
	return e, nil
}

// dataFile is a line of a manifest-files.json.
type dataFile struct {
	Key       string `json:"dataFileS3Key"`
	MD5       string `json:"md5Checksum"`
	ItemCount *int64 `json:"itemCount"`
}

// filesOf returns the files to read for some paths. The data files of an export take the
// place of the first path that belongs to it.
// Paths that belong to no export come as they are, in their order. whole has the exports whose time is known.
func filesOf(paths []string) (out []source, whole []*Export, err error) {
	var exports []string // their folders
	data := map[string][]source{}
	owner := map[string]string{} // the export of each data file, by absolute path
	for _, p := range paths {
		if name := filepath.Base(p); name != summaryFile && name != listFile {
			continue
		}
		dir := filepath.Dir(p)
		if _, known := data[dir]; known {
			continue
		}
		files, export, err := exportFiles(dir)
		if err != nil {
			return nil, nil, err
		}
		if data[dir], exports = files, append(exports, dir); export != nil {
			whole = append(whole, export)
		}
		for _, f := range files {
			owner[absolutePath(f.path)] = dir
		}
	}
	given := map[string]bool{}
	for _, p := range paths {
		dir, is := owner[absolutePath(p)]
		if !is && isExportFile(p, exports) {
			dir, is = filepath.Dir(p), true
		}
		switch {
		case !is:
			out = append(out, source{path: p, items: -1})
		case !given[dir]:
			given[dir] = true
			out = append(out, data[dir]...)
		}
	}
	return out, whole, nil
}

// absolutePath is a path by which files are compared. Links are not followed.
func absolutePath(p string) string {
	abs, err := filepath.Abs(p)
	if err != nil {
		return filepath.Clean(p)
	}
	return abs
}

// isExportFile reports whether a file belongs to an export and is not one of its data files.
func isExportFile(p string, exports []string) bool {
	if !slices.Contains(exports, filepath.Dir(p)) {
		return false
	}
	name := filepath.Base(p)
	rest, is := strings.CutPrefix(name, "manifest-")
	switch rest {
	case "summary.json", "summary.md5", "summary.checksum", "files.json", "files.md5", "files.checksum":
		return is
	}
	return name == "_started"
}

// exportFiles lists the data files of the export in a folder.
func exportFiles(dir string) (files []source, export *Export, err error) {
	var s summary
	text, err := os.ReadFile(filepath.Join(dir, summaryFile))
	switch {
	case errors.Is(err, fs.ErrNotExist): // the list is enough, but for the time
	case err != nil:
		return nil, nil, err
	case json.Unmarshal(text, &s) != nil || s.ExportARN == "" && s.ManifestKey == "":
		return nil, nil, fmt.Errorf("%s: %w: it cannot be read; copy it from S3 again", filepath.Join(dir, summaryFile), ErrExport)
	case s.OutputFormat != "" && s.OutputFormat != "DYNAMODB_JSON":
		return nil, nil, fmt.Errorf("%s: %w: its format is %s; export the table in the format DYNAMODB_JSON", dir, ErrNoRecords, s.OutputFormat)
	}
	name := filepath.Join(dir, listFile)
	lines, err := readManifest(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, fmt.Errorf("%s: %w: %s is missing; copy the whole folder", dir, ErrExport, listFile)
	}
	if err == nil {
		err = s.checkFiles(lines)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w: %w; copy it from S3 again", name, ErrExport, err)
	}
	if export, err = s.exportOf(dir); err != nil {
		return nil, nil, err
	}
	files, err = findDataFiles(dir, s.ManifestKey, lines)
	for i := range files {
		files[i].export = export
	}
	return files, export, err
}

// readManifest reads the lines of a manifest-files.json.
func readManifest(name string) ([]dataFile, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var lines []dataFile
	for d := json.NewDecoder(f); ; {
		var line dataFile
		err := d.Decode(&line)
		switch {
		case err == io.EOF:
			return lines, nil
		case err != nil:
			return nil, fmt.Errorf("line %d cannot be read: %w", len(lines)+1, err)
		case line.Key == "":
			return nil, fmt.Errorf("line %d names no file", len(lines)+1)
		}
		lines = append(lines, line)
	}
}

// checkFiles compares the files with the summary.
// Where an export gives no number of items, nothing is compared.
func (s *summary) checkFiles(lines []dataFile) error {
	if s.ItemCount == nil {
		return nil
	}
	sum := int64(0)
	for _, l := range lines {
		if l.ItemCount == nil {
			return nil
		}
		sum += *l.ItemCount
	}
	if sum != *s.ItemCount {
		return fmt.Errorf("its files have %d items, the export has %d", sum, *s.ItemCount)
	}
	return nil
}

// findDataFiles finds the data files. It is an error if one does not exist.
// The error counts all files that are missing and names the first.
func findDataFiles(dir, manifest string, lines []dataFile) (files []source, err error) {
	var missing []string
	for _, l := range lines {
		s := source{path: dataFilePath(dir, manifest, l.Key), md5: l.MD5, items: -1}
		if _, err := os.Stat(s.path); err != nil {
			missing = append(missing, s.path)
		}
		if l.ItemCount != nil {
			s.items = *l.ItemCount
		}
		files = append(files, s)
	}
	if len(missing) > 0 {
		return nil, fmt.Errorf("%s: %w: %d of its %d data files are missing, the first is %s; copy them from S3", dir, ErrExport, len(missing), len(lines), missing[0])
	}
	return files, nil
}

// dataFilePath returns the path of a data file. It is in the export's folder, or, for an
// incremental export, in a folder beside it.
func dataFilePath(dir, manifest, key string) string {
	inside, beside := filepath.Join(dir, "data", path.Base(key)), filepath.Join(dir, "..", "data", path.Base(key))
	if manifest == "" || path.Dir(path.Dir(key)) == path.Dir(manifest) {
		return inside
	}
	if _, err := os.Stat(beside); err != nil {
		if _, err := os.Stat(inside); err == nil {
			return inside
		}
	}
	return beside
}

// checking reads a source. At its end it reports whether content and number of items are
// those of the manifest.
type checking struct {
	io.Reader
	source source
	sum    hash.Hash
	items  int64
}

// checkingReader checks the MD5 sum that an export's manifest has for a file, if it has one, while the
// file is read.
func (s source) checkingReader(r io.Reader) *checking {
	c := &checking{Reader: r, source: s}
	if s.md5 != "" {
		c.sum = md5.New()
		c.Reader = io.TeeReader(r, c.sum)
	}
	return c
}

// countEntry counts an entry.
func (c *checking) countEntry(yield func(Entry) error) func(Entry) error {
	return func(e Entry) error {
		c.items++
		e.Export = c.source.export
		return yield(e)
	}
}

// checkManifest reads the rest of the source and compares it with the manifest.
// An error comes after all entries were yielded: replaying the file again, once it is whole, does the rest.
func (c *checking) checkManifest() error {
	if _, err := io.Copy(io.Discard, c.Reader); err != nil {
		return err
	}
	if c.sum != nil {
		if got := base64.StdEncoding.EncodeToString(c.sum.Sum(nil)); got != c.source.md5 {
			return fmt.Errorf("%s: %w: its MD5 is %s, and %s in the manifest; copy it from S3 again, and replay it again", c.source.path, ErrExport, got, c.source.md5)
		}
		return nil
	}
	if c.source.items >= 0 && c.items != c.source.items {
		return fmt.Errorf("%s: %w: it has %d items, and %d in the manifest; copy it from S3 again, and replay it again", c.source.path, ErrExport, c.items, c.source.items)
	}
	return nil
}
