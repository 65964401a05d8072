package console

import (
	"bytes"
	"fmt"
	"html/template"
	"net/http"
	"slices"
	"time"
	"unicode/utf8"

	"weir/internal/cli"
	"weir/internal/value"
)

// functions are those that the templates call.
var functions = template.FuncMap{
	"line":  func(s string) string { return brief(s, cellRunes) },
	"list":  func(all ...any) []any { return all },
	"long":  func(s string) string { return brief(s, longRunes) },
	"since": stamp,
	"class": classOf,
	"milli": func(d time.Duration) string { return d.Round(time.Millisecond).String() },
}

// How much of a value is shown, in characters: in a cell of a table, and by itself.
const (
	cellRunes = 100
	longRunes = 4000
)

// frame is the content that every page has around its own.
type frame struct {
	Title  string
	Model  string // "" if the page is of none
	Models []link // all of them
	Nav    []link // the pages of the model
	Page   string // the name of the template
	Took   string // how long the page took to make
	Style  template.HTML
	Script bool   // the page has parts that a script moves
	Run    string // of a process in which models change: a page of another run loads itself again
	Token  string // of the forms of a console that may act; "" if it only reads
	Body   any
}

// link is a text that leads somewhere; with an empty Href it is only a text. Here marks the page or
// the choice that the reader is at.
type link struct {
	Text, Href string
	Here       bool
}

// sections are the pages of a model in the order of the navigation, with the templates that
// belong to each.
var sections = []struct {
	text, below string
	templates   []string
}{
	{"Model", "", []string{"model"}},
	{"Rows", "/rows", []string{"rows", "row", "why"}},
	{"Queries", "/queries", []string{"queries", "query"}},
	{"Live", "/tail", []string{"tail"}},
	{"Dead letters", "/dead", []string{"dead", "letter"}},
	{"Health", "/health", []string{"health"}},
	{"Try", "/try", []string{"try", "new"}},
}

// renderPage answers with a page, made whole before its first byte is sent.
// An error of a template is returned before anything is sent. An error of sending is
// http.ErrAbortHandler: the browser has gone, and no second answer is possible.
func (r *request) renderPage(status int, name, title string, body any) error {
	f := frame{Title: title, Page: name, Body: body, Style: styled, Script: name == "tail" || name == "query"}
	if r.c.options.Write {
		f.Token = r.c.token
	}
	if r.c.options.Try != nil {
		f.Run, f.Script = r.c.options.Activity.run, true
	}
	for _, p := range r.c.system.Models {
		f.Models = append(f.Models, link{p.Model.Name, modelPath(p.Model.Name, ""), p == r.part})
	}
	if r.part != nil {
		f.Model = r.part.Model.Name
		for _, s := range sections {
			if s.below == "/try" && (r.c.options.Try == nil || !r.c.options.Write) {
				continue
			}
			f.Nav = append(f.Nav, link{s.text, r.path(s.below), slices.Contains(s.templates, name)})
		}
	}
	var content bytes.Buffer
	if err := r.c.pages.ExecuteTemplate(&content, name, &f); err != nil {
		return err
	}
	f.Took = took(time.Since(r.began))
	f.Body = template.HTML(content.String()) // the output of a template
	var all bytes.Buffer
	if err := r.c.pages.ExecuteTemplate(&all, "frame", &f); err != nil {
		return err
	}
	setHeaders(r.w, "text/html; charset=utf-8")
	r.w.WriteHeader(status)
	_, err := r.w.Write(all.Bytes())
	if err != nil {
		return http.ErrAbortHandler
	}
	return nil
}

// ok is renderPage with 200.
func (r *request) ok(name, title string, body any) error {
	return r.renderPage(http.StatusOK, name, title, body)
}

func took(d time.Duration) string { return fmt.Sprintf("%.1f ms", float64(d.Microseconds())/1000) }

// stamp is a time in UTC to the second; "" for none. The time 0 of Unix is that of a record without one.
func stamp(t *time.Time) string {
	if t == nil || t.Unix() <= 0 {
		return ""
	}
	return t.UTC().Format("2006-01-02 15:04:05 UTC")
}

// brief returns the beginning of a text in one line. Characters that could change how the text around it
// reads, such as the order of writing, is escaped.
// most counts characters, not bytes.
func brief(s string, most int) string {
	n, end := 0, len(s)
	for i := range s {
		if n == most {
			end = i
			break
		}
		n++
	}
	out := cli.Line(s[:end])
	if end < len(s) {
		out += "…"
	}
	return out
}

// text returns a value as people read it: a text as it is, everything else as JSON.
func text(v value.Value) string {
	switch v.Kind() {
	case value.Missing:
		return ""
	case value.String:
		return v.Text()
	case value.Number:
		return value.Scalar(v)
	}
	return string(value.AppendPlain(nil, v))
}

// shown is a value on a page.
type shown struct {
	Text   string
	Cut    int // how many characters there are in all, if not all are shown
	Number bool
}

// show is a value cut to most characters. Its text has no line break and no character that changes
// how its surroundings read.
func show(v value.Value, most int) shown {
	full := text(v)
	s := shown{Text: brief(full, most), Number: v.Kind() == value.Number}
	if len(full) > most {
		if n := utf8.RuneCountInString(full); n > most {
			s.Cut = n
		}
	}
	return s
}
