package projectorcli

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"weir/internal/api"
	"weir/internal/cli"
	"weir/internal/deadletter"
	"weir/internal/model"
	"weir/internal/query"
	"weir/internal/web"
)

// running is the flags of a command that can ask a running process. The rows that the process reads are then
// the ones that count; the flags that say where rows are say nothing.
type running struct {
	Server   string `placeholder:"URL" help:"Ask the projector run or dev that serves at this URL, instead of opening the rows. A process on this machine that has the directory is asked without it."`
	KeysFile string `name:"keys-file" placeholder:"FILE" help:"With --server, its keys, one a line, of which the first is sent. Or give them in WEIR_KEYS, with a comma between."`
}

// Bounds of an answer: how long it may take, which is longer than a server works on one, and how
// large it may be: a page has about 4 MB of rows, and reading takes several times an answer's bytes.
const (
	answerTime = time.Minute
	answerSize = 20 << 20
)

// rowsOf are the rows of a page, each an object in one line.
type rowsOf []json.RawMessage

// errNotRows is the error for an answer that no server of weir gives as the rows of a page.
var errNotRows = errors.New("not the rows of a page")

// UnmarshalJSON reads an array of objects. It stops at an element that is none, and at more than a page may have, so that the array that
// it makes takes no more than the text.
func (rows *rowsOf) UnmarshalJSON(text []byte) error {
	d := json.NewDecoder(bytes.NewReader(text))
	if begin, err := d.Token(); err != nil || begin != json.Delim('[') {
		return errNotRows
	}
	for *rows = (rowsOf{}); d.More(); {
		var row json.RawMessage
		if err := d.Decode(&row); err != nil || !bytes.HasPrefix(row, []byte("{")) || len(*rows) == query.MaxLimit {
			return errNotRows
		}
		var line bytes.Buffer
		if err := json.Compact(&line, row); err != nil {
			return err
		}
		*rows = append(*rows, line.Bytes())
	}
	return nil
}

// asker asks a server. Make it with running.newAsker.
type asker struct {
	base   string
	below  string // before all paths
	key    string
	client http.Client
}

// found reports whether a directory could not be opened since a process has it that serves, which is asked then.
func (f *running) found(err error, d data) bool {
	f.Server = cli.ServerOf(err, d.at().Directory())
	return f.Server != ""
}

// newAsker checks the flags. A mistake in them is a usage error; no error has a key in it.
func (f *running) newAsker() (*asker, error) {
	u, err := url.Parse(f.Server)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return nil, usage("--server takes a URL such as http://127.0.0.1:8480, without a user and parameters")
	}
	key, err := f.key()
	if err != nil {
		return nil, err
	}
	return &asker{base: strings.TrimRight(u.String(), "/"), key: key, client: http.Client{
		Timeout: answerTime,
		// A key goes to the server that was named and to no other.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

// key returns the first of the keys, "" if there are none. The server accepts each of its keys.
func (f *running) key() (string, error) {
	text := strings.ReplaceAll(os.Getenv(web.EnvKeys), ",", "\n")
	if f.KeysFile != "" {
		if text != "" {
			return "", usage("keys are given twice, in %s and in %s; give one", web.EnvKeys, f.KeysFile)
		}
		b, err := os.ReadFile(f.KeysFile)
		if err != nil {
			return "", err
		}
		if text = string(b); strings.TrimSpace(text) == "" {
			return "", usage("%s has no key", f.KeysFile)
		}
	}
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	key, _, _ := strings.Cut(strings.TrimSpace(line), " ") // its roles are behind it
	if strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return "", usage("the key has characters other than visible ASCII")
	}
	return key, nil
}

// getJSON asks for a path, and reads the JSON of the answer into to. A problem that the server reports of
// the question is a usage error.
func (a *asker) getJSON(ctx context.Context, path string, params url.Values, to any) (http.Header, error) {
	return a.send(ctx, http.MethodGet, path, params, nil, to)
}

// send is get with any method, and with a body of JSON unless it is nil.
func (a *asker) send(ctx context.Context, method, path string, params url.Values, what, to any) (http.Header, error) {
	at := a.base + a.below + path
	if len(params) > 0 {
		at += "?" + params.Encode()
	}
	var said io.Reader
	if what != nil {
		b, err := json.Marshal(what)
		if err != nil {
			return nil, err
		}
		said = bytes.NewReader(b)
	}
	req, err := http.NewRequestWithContext(ctx, method, at, said)
	if err != nil {
		return nil, err
	}
	if what != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if a.key != "" {
		req.Header.Set("Authorization", "Bearer "+a.key)
	}
	res, err := a.client.Do(req)
	if err != nil {
		return nil, cmp.Or(ctx.Err(), fmt.Errorf("the server %s does not answer: %w", a.base, errors.Unwrap(err)))
	}
	defer res.Body.Close()
	body, err := io.ReadAll(io.LimitReader(res.Body, answerSize+1))
	switch {
	case err != nil:
		return nil, cmp.Or(ctx.Err(), fmt.Errorf("the answer of %s breaks off: %w", a.base, err))
	case len(body) > answerSize:
		return nil, fmt.Errorf("the answer of %s has more than %d MB; ask for less", a.base, answerSize>>20)
	case res.StatusCode != http.StatusOK:
		return nil, a.refused(res.StatusCode, body)
	}
	if err := json.Unmarshal(body, to); err != nil {
		return nil, usage("%s does not answer as a server of weir does; is the URL right?", a.base)
	}
	return res.Header, nil
}

// absent is the error for a path that the server does not have.
type absent struct{ error }

func (e *absent) Unwrap() error { return e.error }

// Is says that a letter which a server does not have is none.
func (e *absent) Is(target error) bool { return target == deadletter.ErrNoDead }

// refused is the error for an answer that is none.
func (a *asker) refused(status int, body []byte) error {
	var said web.Problem
	detail := http.StatusText(status)
	if json.Unmarshal(body, &said) == nil && said.Detail != "" {
		detail = fmt.Sprintf("%.1000s", said.Detail)
	}
	switch {
	case status == http.StatusUnauthorized && a.key == "":
		return usage("the server %s needs a key: give it in %s or with --keys-file FILE", a.base, web.EnvKeys)
	case status == http.StatusUnauthorized:
		return usage("the server %s does not know the key", a.base)
	case status == http.StatusNotFound:
		return &absent{usage("the server %s: %s (%d)", a.base, detail, status)}
	case status < 500 && status != http.StatusTooManyRequests:
		return usage("the server %s: %s (%d)", a.base, detail, status)
	}
	return fmt.Errorf("the server %s: %s (%d)", a.base, detail, status)
}

// getPage asks for a page of an answer.
func (a *asker) getPage(ctx context.Context, path string, ask url.Values, limit int, cursor string) (out answerPage, err error) {
	if limit > 0 {
		ask.Set("limit", strconv.Itoa(limit))
	}
	if cursor != "" {
		ask.Set("cursor", cursor)
	}
	var page struct {
		Items  *rowsOf `json:"items"`
		Cursor string  `json:"cursor"`
	}
	said, err := a.getJSON(ctx, path, ask, &page)
	if err == nil && page.Items == nil {
		err = usage("%s does not answer as a server of weir does; is the URL right?", a.base)
	}
	if err != nil {
		return out, err
	}
	out = answerPage{rows: *page.Items, cursor: page.Cursor}
	if names := said.Get(api.Unfinished); names != "" {
		out.unfinished = strings.Split(names, ", ")
	}
	return out, nil
}

// mostEmpty is how many pages without a row may follow each other: each of them has looked at many rows.
const mostEmpty = 10_000

// askServer prints the answer of a server, in the forms that Run prints.
func (c *queryCommand) askServer(p *program, params map[string]string, limit int) error {
	a, err := c.running.newAsker()
	if err != nil {
		return err
	}
	m, err := cli.LoadModel(p.ctx, c.Model)
	if err != nil {
		return err
	}
	m.Flags = []model.Flag{{Name: "server", Value: c.Server}}
	for _, name := range []string{"cursor", "select"} { // to HTTP they are no parameters
		if _, ok := params[name]; ok {
			return usage("query %s has no parameter %s", c.Name, name)
		}
	}
	if slices.ContainsFunc(c.Only, func(name string) bool { return name == "" || strings.Contains(name, ",") }) {
		return usage("--only takes names of attributes; with --server, none may be empty or have a comma")
	}
	ask := url.Values{}
	for k, v := range params {
		ask.Set(k, v)
	}
	if len(c.Only) > 0 {
		ask.Set("select", strings.Join(c.Only, ","))
	}
	path := "/v1/" + url.PathEscape(m.Name) + "/" + url.PathEscape(c.Name)
	empty := 0 // pages without a row, one after the other
	return c.print(p, m, limit, func(limit int, cursor string) (answerPage, error) {
		page, err := a.getPage(p.ctx, path, ask, limit, cursor)
		if empty++; len(page.rows) > 0 {
			empty = 0
		}
		if err == nil && empty == mostEmpty && page.cursor != "" {
			err = fmt.Errorf("the server %s gives %d pages without a row, one after the other, and more", a.base, mostEmpty)
		}
		return page, err
	})
}
