package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// writeModel writes the gallery's model with two queries more, which list all rows that have counts.
func (p *peers) writeModel(from string) error {
	text, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	before, after, ok := bytes.Cut(text, []byte("\nqueries:\n"))
	if !ok {
		return fmt.Errorf("%s has no queries", from)
	}
	p.model = filepath.Join(p.dir, "gallery.yaml")
	const all = "\nqueries:\n  every-album: {list: Album, by: GSI1}\n  every-media: {list: Media, by: GSI2}\n"
	return os.WriteFile(p.model, bytes.Join([][]byte{before, []byte(all), after}, nil), 0o644)
}

func (p *peers) loadWeir(recording, dir string) (*exec.Cmd, error) {
	return exec.Command(p.projector, "replay", p.model, recording, "--data", dir, "--no-search", "--memory", p.memory), nil
}

func (p *peers) dumpWeir(dir string, out io.Writer) error {
	return errors.Join(
		p.query(dir, out, "every-album", "ALBUM#", "mediaCount"),
		p.query(dir, out, "every-media", "MEDIA#", "likeCount", "bookmarkCount"))
}

// query prints the values of all rows that a query lists.
func (p *peers) query(dir string, out io.Writer, query, prefix string, values ...string) error {
	cmd := exec.Command(p.projector, "query", p.model, query, "--data", dir)
	var talk bytes.Buffer
	cmd.Stderr = &talk
	rows, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	in := jsontext.NewDecoder(bufio.NewReader(rows))
	for {
		var row map[string]any
		if err := json.UnmarshalDecode(in, &row); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return errors.Join(err, cmd.Wait())
		}
		for _, v := range values {
			if n, ok := row[v].(float64); ok && n != 0 {
				fmt.Fprintf(out, "%s%v %s %.0f\n", prefix, row["id"], v, n)
			}
		}
	}
	if err := cmd.Wait(); err != nil {
		return fmt.Errorf("projector query: %w\n%s", err, talk.Bytes())
	}
	return nil
}
