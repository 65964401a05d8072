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
	"time"

	"github.com/klauspost/compress/zstd"
)

// A form writes captured streams down the way one of the real tools does.
type form func([]stream) ([]file, error)

type file struct {
	name string
	data []byte
}

// pagesForm: the pages of GetRecords as they came, one a line.
func pagesForm(name string) form {
	return func(streams []stream) ([]file, error) {
		var b bytes.Buffer
		for _, s := range streams {
			for _, page := range s.pages {
				b.Write(bytes.TrimSpace(page))
				b.WriteByte('\n')
			}
		}
		return gzipped(name, b.Bytes())
	}
}

// bareForm: the records alone, one a line.
func bareForm(name string) form {
	return func(streams []stream) ([]file, error) {
		var b bytes.Buffer
		for _, s := range streams {
			for _, r := range s.records {
				b.Write(r)
				b.WriteByte('\n')
			}
		}
		return gzipped(name, b.Bytes())
	}
}

// lambdaForm: the events with which Lambda calls a function, one a line. name is a file name, in which %s is the table.
func lambdaForm(name string, compress func(string, []byte) ([]file, error)) form {
	return func(streams []stream) ([]file, error) {
		var out []file
		for _, s := range streams {
			data, err := lambdaEvents(s)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", s.table, err)
			}
			path := name
			if len(streams) > 1 {
				path = fmt.Sprintf(name, s.table)
			}
			files, err := compress(path, data)
			if err != nil {
				return nil, err
			}
			out = append(out, files...)
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

// cliForm: what the command line prints for get-records, one document a file.
func cliForm(name string) form {
	return func(streams []stream) ([]file, error) {
		var out []file
		for _, s := range streams {
			for _, page := range s.pages {
				doc, err := cliDocument(page)
				if err != nil {
					return nil, fmt.Errorf("%s: %w", s.table, err)
				}
				files, err := gzipped(fmt.Sprintf(name, len(out)+1), doc)
				if err != nil {
					return nil, err
				}
				out = append(out, files...)
			}
		}
		return out, nil
	}
}

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

func gzipped(name string, data []byte) ([]file, error) {
	return compressed(name, data, func(w io.Writer) (io.WriteCloser, error) {
		return gzip.NewWriterLevel(w, gzip.BestCompression)
	})
}

func zstandard(name string, data []byte) ([]file, error) {
	return compressed(name, data, func(w io.Writer) (io.WriteCloser, error) {
		return zstd.NewWriter(w, zstd.WithEncoderLevel(zstd.SpeedBestCompression))
	})
}

func compressed(name string, data []byte, open func(io.Writer) (io.WriteCloser, error)) ([]file, error) {
	var b bytes.Buffer
	w, err := open(&b)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(data); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return []file{{name, b.Bytes()}}, nil
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
