package main

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/klauspost/compress/zstd"
)

// A form writes captured streams down the way one of the real tools does.
type form func([]stream) ([]file, error)

type file struct {
	name string
	data []byte
}

// forms are those of the recordings, by a file's name in which %s is the table and %d the file's number.
var forms = map[string]func(name string) form{
	"pages": func(name string) form { // the pages of GetRecords as they came, one a line
		return linesForm(name, func(s stream) [][]byte { return s.pages })
	},
	"bare": func(name string) form { // the records alone, one a line
		return linesForm(name, func(s stream) [][]byte {
			return mapEach[[][]byte](s.records, func(r json.RawMessage) []byte { return r })
		})
	},
	"lambda": func(name string) form { // the events with which Lambda calls a function, one a line
		return perFile(name, func(s stream) ([][]byte, error) {
			data, err := lambdaEvents(s)
			return [][]byte{data}, err
		})
	},
	"cli": func(name string) form { // what the command line prints for get-records, one document a file
		return perFile(name, func(s stream) (docs [][]byte, err error) {
			for _, page := range s.pages {
				doc, err := cliDocument(page)
				if err != nil {
					return nil, err
				}
				docs = append(docs, doc)
			}
			return docs, nil
		})
	},
}

// linesForm puts the lines that of returns for all streams into one file.
func linesForm(name string, of func(stream) [][]byte) form {
	return func(streams []stream) ([]file, error) {
		var b bytes.Buffer
		for _, s := range streams {
			for _, line := range of(s) {
				b.Write(append(bytes.TrimSpace(line), '\n'))
			}
		}
		f, err := compressFile(name, b.Bytes())
		return []file{f}, err
	}
}

// perFile puts each document of each stream into a file of its own.
func perFile(name string, of func(stream) ([][]byte, error)) form {
	return func(streams []stream) (out []file, err error) {
		for _, s := range streams {
			docs, err := of(s)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", s.table, err)
			}
			for _, doc := range docs {
				path := strings.NewReplacer("%s", s.table, "%d", strconv.Itoa(len(out)+1)).Replace(name)
				f, err := compressFile(path, doc)
				if err != nil {
					return nil, err
				}
				out = append(out, f)
			}
		}
		return out, nil
	}
}

// lambdaBatches are the sizes of the events, in turn: Lambda's depend on what has piled up.
var lambdaBatches = []int{1, 100, 7, 100, 43, 2, 100, 100, 18}

func lambdaEvents(s stream) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	for i, left := 0, s.records; len(left) > 0; i++ {
		size := min(lambdaBatches[i%len(lambdaBatches)], len(left))
		event := struct{ Records []lambdaRecord }{make([]lambdaRecord, size)}
		for j, raw := range left[:size] {
			if err := json.Unmarshal(raw, &event.Records[j]); err != nil {
				return nil, err
			}
			event.Records[j].EventSourceARN = s.arn
		}
		if err := enc.Encode(event); err != nil {
			return nil, err
		}
		left = left[size:]
	}
	return b.Bytes(), nil
}

// A lambdaRecord is a stream record as Lambda spells it. Reading is insensitive to case, so it reads the service's own.
type lambdaRecord struct {
	EventID      string          `json:"eventID"`
	EventName    string          `json:"eventName"`
	EventVersion string          `json:"eventVersion"`
	EventSource  string          `json:"eventSource"`
	AWSRegion    string          `json:"awsRegion"`
	DynamoDB     json.RawMessage `json:"dynamodb"`
	UserIdentity *struct {
		PrincipalID string `json:"principalId"`
		Type        string `json:"type"`
	} `json:"userIdentity,omitempty"`
	EventSourceARN string `json:"eventSourceARN"`
}

var created = regexp.MustCompile(`"ApproximateCreationDateTime":\s*([0-9]+)(?:\.[0-9]+)?`)

// cliDocument prints a page as the second version of the command line does: indented, and with times as text.
func cliDocument(page []byte) ([]byte, error) {
	dated := created.ReplaceAllFunc(page, func(m []byte) []byte {
		sec, err := strconv.ParseInt(string(created.FindSubmatch(m)[1]), 10, 64)
		if err != nil {
			return m
		}
		return []byte(`"ApproximateCreationDateTime":"` + time.Unix(sec, 0).UTC().Format("2006-01-02T15:04:05-07:00") + `"`)
	})
	var b bytes.Buffer
	if err := json.Indent(&b, bytes.TrimSpace(dated), "", "    "); err != nil {
		return nil, err
	}
	b.WriteByte('\n')
	return b.Bytes(), nil
}

// compressFile packs a file as its name says.
func compressFile(name string, data []byte) (file, error) {
	var b bytes.Buffer
	var w io.WriteCloser
	var err error
	if strings.HasSuffix(name, ".zst") {
		w, err = zstd.NewWriter(&b, zstd.WithEncoderLevel(zstd.SpeedBestCompression))
	} else {
		w, err = gzip.NewWriterLevel(&b, gzip.BestCompression)
	}
	if err == nil {
		_, err = w.Write(data)
	}
	if err == nil {
		err = w.Close()
	}
	return file{name, b.Bytes()}, err
}

// replaceDir makes dir hold these files and no others. A run that is killed half-way leaves either folder whole,
// under dir or beside it.
func replaceDir(dir string, files []file) error {
	next, last := dir+".next", dir+".last"
	if err := os.RemoveAll(next); err != nil {
		return err
	}
	if err := os.MkdirAll(next, 0o755); err != nil {
		return err
	}
	for _, f := range files {
		if err := os.WriteFile(filepath.Join(next, f.name), f.data, 0o644); err != nil {
			return err
		}
	}
	if err := os.RemoveAll(last); err != nil {
		return err
	}
	if err := os.Rename(dir, last); err != nil && !os.IsNotExist(err) {
		return err
	}
	if err := os.Rename(next, dir); err != nil {
		return err
	}
	return os.RemoveAll(last)
}
