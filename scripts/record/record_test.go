package main

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// TestScripts plays each model by its books alone: what must be answered is what stands beside the recordings.
func TestScripts(t *testing.T) {
	for _, m := range models {
		t.Run(m, func(t *testing.T) {
			a := newApp(t.Context(), m, "", 1, 1)
			a.offline = true
			s := &script{app: a, expect: newExpect(a)}
			if err := errors.Join(s.playScripts(), s.err()); err != nil {
				t.Fatal(err)
			}
			got, err := s.makeFile(m, len(a.log))
			if err != nil {
				t.Fatal(err)
			}
			want, err := os.ReadFile(filepath.Join("../..", recordingFolder(m), "expected.json.gz"))
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(unpacked(t, got.data), unpacked(t, want)) {
				t.Error("other answers than beside the recording, which needs to be made again with make record")
			}
		})
	}
}

func unpacked(t *testing.T, data []byte) []byte {
	t.Helper()
	r, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	out, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestBadScripts: a script that calls what there is wrongly ends with the line that does.
func TestBadScripts(t *testing.T) {
	for _, c := range []string{"times('x')", "times()", "put({'a': 1})", "check('q')", "one(1)", "form('tar', 'x', 1)", "nothing()"} {
		s := &script{app: newApp(t.Context(), "bad", "", 1, 1)}
		s.expect = newExpect(s.app)
		if err := s.execScript("bad.star", []byte("x = 1\n"+c+"\n"), s.predeclared()); err == nil || !strings.Contains(err.Error(), "bad.star:2") {
			t.Errorf("%s: %v", c, err)
		}
	}
}

func TestWords(t *testing.T) {
	for in, want := range map[string][]string{
		"Crème brûlée à Montréal": {"creme", "brulee", "a", "montreal"},
		"IMG_0042-plage.JPG":      {"img", "0042", "plage", "jpg"},
		"O'Neill's":               {"o", "neill", "s"},
		"e\u0301te\u0301":         {"ete"},
		"żółw":                    {"zołw"},
		"🌊":                       {},
	} {
		if got := wordsOf(in); len(got) != len(want) || len(got) > 0 && !reflect.DeepEqual(got, want) {
			t.Errorf("words(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestFind(t *testing.T) {
	s := searched{query: "test", fields: []string{"title", "tags"}, rows: []row{
		{"title": "Glacier walk", "tags": listValue("snow")}, {"title": "Glazier at work"}, {"title": "Route 66"}, {"title": "The fox"},
	}}
	for q, want := range map[string]int{
		"glacier": 1, "GLAC": 1, "glac walk": 0, "walk glac": 1, "walk snow": 1, // the last word alone may be a beginning
		"glasier": 2, "glaciers": 1, "route 66": 1, "route 67": 0, "rute 66": 1, "fux": 0, "nothing": 0,
	} {
		if got := s.findRows(q, true, matchesWithTypo); len(got) != want {
			t.Errorf("find(%q) = %v, want %d rows", q, got, want)
		}
	}
}

func TestMean(t *testing.T) {
	for _, c := range []struct {
		want num
		of   []num
	}{
		{"1.13", []num{"1", "1", "1", "1", "1", "1", "1", "2"}}, {"3.63", []num{"3.5", "3.75"}}, {"2", []num{"2"}},
		{"2.5", []num{"2", "3"}}, {"0.33", []num{"0", "0", "1"}}, {"0.67", []num{"0", "1", "1"}},
	} {
		if got := roundedMean(c.of); got != c.want {
			t.Errorf("mean(%v) = %s, want %s", c.of, got, c.want)
		}
	}
}

// TestValue takes a row of every type from the service's JSON and to it.
func TestValue(t *testing.T) {
	var raw obj
	text := `{"s":{"S":"é"},"n":{"N":"12345678901234567890123456789012345678"},"t":{"BOOL":true},"f":{"BOOL":false},"z":{"NULL":true},
		"b":{"B":"AP8="},"ss":{"SS":["b","a"]},"ns":{"NS":["10","9","-1.5"]},"bs":{"BS":["AQ==","AA=="]},"l":{"L":[{"S":""},{"L":[]}]},"m":{"M":{"x":{"M":{}}}}}`
	if err := json.Unmarshal([]byte(text), &raw); err != nil {
		t.Fatal(err)
	}
	got, err := rowOf(raw)
	if err != nil {
		t.Fatal(err)
	}
	want := row{"s": "é", "n": num("12345678901234567890123456789012345678"), "t": true, "f": false, "z": nil, "b": bin("\x00\xff"),
		"ss": strs{"a", "b"}, "ns": nums{"-1.5", "9", "10"}, "bs": bins{"\x00", "\x01"}, "l": []any{"", []any{}}, "m": row{"x": row{}}}
	if !equalRows(got, want) {
		t.Errorf("from the wire: %v, want %v", got, want)
	}
	// And back: what encoding/json writes of it is what the service wrote, sets sorted.
	sent, err := compactJSON(wireForm(want))
	var back obj
	if err = errors.Join(err, json.Unmarshal(sent, &back)); err != nil {
		t.Fatal(err)
	}
	if again, err := rowOf(back); err != nil || !equalRows(again, want) {
		t.Errorf("to the service and back: %v, %v; want %v", again, err, want)
	}
	shown, err := compactJSON(plainValue(want))
	if err != nil {
		t.Fatal(err)
	}
	const plainJSON = `{"b":"AP8=","bs":["AA==","AQ=="],"f":false,"l":["",[]],"m":{"x":{}},"n":12345678901234567890123456789012345678,"ns":[-1.5,9,10],"s":"é","ss":["a","b"],"t":true,"z":null}`
	if string(shown) != plainJSON {
		t.Errorf("plain: %s, want %s", shown, plainJSON)
	}
	if _, err := rowOf(obj{"x": obj{"Q": "1"}}); err == nil {
		t.Error("a value of no known type is taken")
	}
}

// TestForms writes one record in each form.
func TestForms(t *testing.T) {
	record := `{"eventID":"1","eventName":"REMOVE","eventVersion":"1.1","eventSource":"aws:dynamodb","awsRegion":"ddblocal","dynamodb":{"ApproximateCreationDateTime":1795225980.000,"Keys":{"PK":{"S":"<a>"}},"SequenceNumber":"000000000000000000003"},"userIdentity":{"PrincipalId":"dynamodb.amazonaws.com","Type":"Service"}}`
	s := stream{table: "T", arn: "arn:T", pages: [][]byte{[]byte(`{"Records":[` + record + `]}`)}, records: []json.RawMessage{json.RawMessage(record)}}
	event, err := lambdaEvents(s)
	if err != nil {
		t.Fatal(err)
	}
	const lambda = `{"Records":[{"eventID":"1","eventName":"REMOVE","eventVersion":"1.1","eventSource":"aws:dynamodb","awsRegion":"ddblocal","dynamodb":{"ApproximateCreationDateTime":1795225980.000,"Keys":{"PK":{"S":"<a>"}},"SequenceNumber":"000000000000000000003"},"userIdentity":{"principalId":"dynamodb.amazonaws.com","type":"Service"},"eventSourceARN":"arn:T"}]}` + "\n"
	if string(event) != lambda {
		t.Errorf("Lambda event %s, want %s", event, lambda)
	}
	doc, err := cliDocument(s.pages[0])
	if err != nil {
		t.Fatal(err)
	}
	var page struct{ Records []wireRecord }
	if err := json.Unmarshal(doc, &page); err != nil {
		t.Fatal(err)
	}
	var at struct {
		Records []struct {
			DynamoDB struct{ ApproximateCreationDateTime string } `json:"dynamodb"`
		}
	}
	if err := json.Unmarshal(doc, &at); err != nil || at.Records[0].DynamoDB.ApproximateCreationDateTime != "2026-11-21T01:53:00+00:00" {
		t.Errorf("command line's document %s, error %v", doc, err)
	}
}
