package events

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	lambdaevents "github.com/aws/aws-lambda-go/events"
	"pgregory.net/rapid"

	"weir/internal/value"
)

// FuzzSkip holds the scanner to encoding/json's idea of what JSON is, and of what
// a string holds.
func FuzzSkip(f *testing.F) {
	for _, s := range []string{
		`{"a":[1,-0,0.5,1e9,-1.5E-3,true,false,null,"x\u00e9\ud83d\ude00\ud83d\n\\\"\/\b\f\r\t"]}`, `01`, `1.`, `-`, `"` + "\xff\xe3\x81" + `"`, `"\ud800\ud800"`,
		`[[[[]]]]`, `{"a":1,"a":2}`, `{"a" : [ ] , "b":{ } }`, "\"\x1f\"", `"\u12"`, `nul`, `[1,]`, `{"a"}`, `{,}`, "\ufeff{}", `"12345678\"2345678\\"`, "\"1234567é1234567旅\"",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		p := scanner{b: append(bytes.Clone(data), '\n')}
		p.skipValue()
		ok := p.stop == going && len(bytes.Trim(p.b[p.i:], " \t\r\n")) == 0
		if valid := json.Valid(data); ok != valid {
			t.Fatalf("skip says %v, json.Valid %v; stopped at %d: %s", ok, valid, p.at, p.why)
		}
		var want string
		if !ok || json.Unmarshal(data, &want) != nil || bytes.TrimSpace(data)[0] != '"' {
			return
		}
		p.i, p.stop = bytes.IndexByte(data, '"'), going
		if got := p.readString(); got != want {
			t.Fatalf("str gives %q, encoding/json %q", got, want)
		}
	})
}

// FuzzDecode compares what DecodeLambda makes of an event with what encoding/json
// makes of it with the types of aws-lambda-go. Where that gives a record which
// DynamoDB could have sent, ours must be good and the same, numbers compared as
// numbers. Not compared, because the two differ by design:
//
//   - objects with a name twice: encoding/json merges images, ours takes the later
//     (inside an image both take the later attribute);
//   - names whose capitals differ by more than ASCII (the Kelvin sign for k);
//   - elements that are no stream records: null, or of the other forms of this
//     package, which encoding/json gives as empty records;
//   - times: there seconds as a float, here exact;
//   - what a NULL holds, which is not looked at there.
//
// What DynamoDB cannot have sent, and encoding/json takes, is a bad record here:
// numbers that are none, sets that are empty or hold an element twice, a NULL that
// is not true, more than 32 levels, no Keys, no sequence number, no or another
// eventName, images that do not go with it.
func FuzzDecode(f *testing.F) {
	f.Add(lambdaPayload(2))
	for _, c := range []string{
		`{"Records":[` + streamRecord(1) + `]}`,
		`{"Records":[{"eventName":"REMOVE","userIdentity":{"type":"Service","principalId":"dynamodb.amazonaws.com"},"dynamodb":{"Keys":{"k":{"B":"AAE="}},"OldImage":{"k":{"B":"AAE="},"a":{"BOOL":false},"b":{"BS":["QQ==","Qg=="]},"c":{"L":[{"M":{"d":{"NULL":true}}},{"L":[]}]},"e":{"NS":["10","9","-1.50"]},"f":{"SS":["b","a"]},"g":{"N":"1E5"}},"SequenceNumber":"12345678901234567890123"}}]}`,
		`{"Records":[{"eventName":"INSERT","dynamodb":{"Keys":{"k":{"S":"a"}},"NewImage":{"\u006b":{"\u0053":"\u0061"},"x":{"S":"\ud83d\ude00\ud800x"}},"SequenceNumber":"1"}}]}`,
		`{"Records":[{"eventName":"INSERT","dynamodb":{"Keys":{"k":{"S":""}},"NewImage":{"n":{"N":"+1"},"s":{"SS":["a","a"]}},"SequenceNumber":"1"}}, null]}`,
	} {
		f.Add([]byte(c))
	}
	f.Fuzz(func(t *testing.T, payload []byte) { compareDecoders(t, payload) })
}

// compareDecoders reports how many records were compared and good.
func compareDecoders(t rapid.TB, payload []byte) (good int) {
	ours, err := DecodeLambda(payload)
	var theirs lambdaevents.DynamoDBEvent
	if json.Unmarshal(payload, &theirs) != nil || peculiar(payload) || len(theirs.Records) == 0 {
		return 0
	}
	if err != nil || len(ours.Entries) != len(theirs.Records) {
		t.Fatalf("%d entries, %v; encoding/json has %d", len(ours.Entries), err, len(theirs.Records))
	}
	for i, e := range ours.Entries {
		want, ok := plausible(&theirs.Records[i])
		e.Record.Time = time.Time{}
		switch {
		case e.Bad != nil && (strings.Contains(e.Bad.Error(), "NULL: ") || strings.Contains(e.Bad.Error(), "DateTime: ")):
			// encoding/json does not look at these
		case ok && e.Bad != nil:
			t.Fatalf("record %d is refused: %v", i, e.Bad)
		case !ok && e.Bad == nil:
			t.Fatalf("record %d is taken: %s", i, describe(e))
		case ok && describe(e) != describe(Entry{Record: want, Location: e.Location}):
			t.Fatalf("record %d:\n%s\nwant\n%s", i, describe(e), describe(Entry{Record: want, Location: e.Location}))
		case ok:
			good++
		}
	}
	return good
}

// peculiar reports whether an event is one of those that are not compared.
func peculiar(payload []byte) bool {
	d := json.NewDecoder(bytes.NewReader(payload))
	var names []map[string]bool // of the objects around; nil for arrays
	named := false
	for {
		tok, err := d.Token()
		if err != nil {
			return false
		}
		top := len(names) - 1
		switch tok := tok.(type) {
		case json.Delim:
			switch tok {
			case '{':
				names = append(names, map[string]bool{})
			case '[':
				names = append(names, nil)
			default:
				names = names[:top]
			}
			named = false
			continue
		case string:
			if top >= 0 && names[top] != nil && !named {
				fold := strings.ToLower(strings.ToUpper(tok))
				if names[top][fold] || strings.ContainsAny(tok, "\u017f\u212a") || top < 4 && otherForms[fold] || top == 2 && images[fold] || top > 0 && top < 4 && fold == "records" {
					return true
				}
				names[top][fold] = true
				named = true
				continue
			}
		case nil:
			if top == 1 && names[1] == nil {
				return true // a record that is null
			}
		}
		named = false
	}
}

// otherForms are names of forms that are not Lambda's, where a record may stand.
var otherForms = map[string]bool{
	"kinesis": true, "data": true, "item": true, "metadata": true, "payload": true, "tablename": true, "recordformat": true,
	"ddbstreambatchinfo": true, "exportarn": true, "datafiles3key": true, "manifestfiless3key": true,
	"approximatecreationdatetimeprecision": true,
}

// images are names that make an object an export's when they stand in it.
var images = map[string]bool{"keys": true, "newimage": true, "oldimage": true}

// plausible is the record that r stands for, if DynamoDB could have sent it.
func plausible(r *lambdaevents.DynamoDBEventRecord) (rec Record, ok bool) {
	rec.ID = r.EventID
	if _, rest, ok := strings.Cut(r.EventSourceArn, ":table/"); ok {
		rec.Table, _, _ = strings.Cut(rest, "/")
	}
	good := true
	rec.Keys = plausibleItem(r.Change.Keys, &good)
	rec.New = plausibleItem(r.Change.NewImage, &good)
	rec.Old = plausibleItem(r.Change.OldImage, &good)
	var err error
	rec.Position, err = ParsePosition(r.Change.SequenceNumber)
	good = good && err == nil && rec.Keys != nil && rec.Event() == r.EventName && (rec.Old != nil || rec.New != nil)
	good = good && (r.EventSourceArn == "" || rec.Table != "")
	for _, k := range rec.Keys {
		good = good && k.Value.Text() != "" || good && k.Value.Kind() != value.String && k.Value.Kind() != value.Binary
		for _, image := range []value.Item{rec.Old, rec.New} {
			good = good && (image == nil || value.Equal(image.Get(k.Name), k.Value))
		}
	}
	if id := r.UserIdentity; id != nil {
		rec.Expired = r.EventName == "REMOVE" && id.Type == "Service" && id.PrincipalID == "dynamodb.amazonaws.com"
	}
	return rec, good
}

func plausibleItem(m map[string]lambdaevents.DynamoDBAttributeValue, good *bool) value.Item {
	if len(m) == 0 {
		return nil
	}
	var attrs []value.Attr
	for name, v := range m {
		attrs = append(attrs, value.Attr{Name: name, Value: plausibleValue(v, 0, good)})
	}
	return value.NewItem(attrs...)
}

func plausibleValue(v lambdaevents.DynamoDBAttributeValue, depth int, good *bool) value.Value {
	number := func(s string) value.Value {
		n, err := value.ParseNumber(s)
		if err != nil {
			*good = false
		}
		return n
	}
	set := func(k value.Kind, elems []value.Attr) value.Value {
		v, ok := value.OfElements(k, elems)
		if !ok || len(elems) == 0 {
			*good = false
		}
		return v
	}
	var elems []value.Attr
	switch v.DataType() {
	case lambdaevents.DataTypeString:
		return value.OfString(v.String())
	case lambdaevents.DataTypeNumber:
		return number(v.Number())
	case lambdaevents.DataTypeBinary:
		return value.OfBinary(string(v.Binary()))
	case lambdaevents.DataTypeBoolean:
		return value.OfBool(v.Boolean())
	case lambdaevents.DataTypeNull:
		return value.OfNull()
	case lambdaevents.DataTypeStringSet:
		for _, s := range v.StringSet() {
			elems = append(elems, value.Attr{Value: value.OfString(s)})
		}
		return set(value.StringSet, elems)
	case lambdaevents.DataTypeNumberSet:
		for _, s := range v.NumberSet() {
			elems = append(elems, value.Attr{Value: number(s)})
		}
		return set(value.NumberSet, elems)
	case lambdaevents.DataTypeBinarySet:
		for _, s := range v.BinarySet() {
			elems = append(elems, value.Attr{Value: value.OfBinary(string(s))})
		}
		return set(value.BinarySet, elems)
	}
	if depth >= value.MaxDepth {
		*good = false
		return value.Value{}
	}
	if v.DataType() == lambdaevents.DataTypeList {
		for _, e := range v.List() {
			elems = append(elems, value.Attr{Value: plausibleValue(e, depth+1, good)})
		}
		list, _ := value.OfElements(value.List, elems)
		return list
	}
	for name, e := range v.Map() {
		elems = append(elems, value.Attr{Name: name, Value: plausibleValue(e, depth+1, good)})
	}
	return value.OfMap(value.NewItem(elems...))
}

// FuzzRead holds what is true of any content: it does not panic, entries come in
// order and lie within it, bad ones hold what stands there, and neither the sizes
// in which it is read nor a payload's decoding make a difference.
func FuzzRead(f *testing.F) {
	f.Add([]byte(streamRecord(1) + "\n{\"eventID\":tru}\n" + streamRecord(2)))
	f.Add([]byte("[" + streamRecord(1) + `,{"eventID":"x},` + streamRecord(2) + `,{"a":1}}]` + streamRecord(3)[:60]))
	f.Add([]byte(`{"DDBStreamBatchInfo":{"shardId":"s"},"payload":"{\"Records\":[{\"dynamodb\":{}}]}"}{"Records":[{"kinesis":{"data":"e30="}}],"x":}`))
	f.Add([]byte("\ufeff{\"Item\":{\"a\":{\"S\":\"\xff\"}}}\n[[],{\"Records\":[]},5]"))
	f.Add([]byte(gzipped(f, streamRecord(1))))
	f.Add([]byte(zstded(f, streamRecord(1))))
	f.Fuzz(func(t *testing.T, content []byte) {
		whole := readAll(bytes.NewReader(content))
		if pieces := readAll(pieces{bytes.NewReader(content), 1 + len(content)%7}); pieces != whole {
			t.Fatalf("in pieces:\n%s\nwhole:\n%s", pieces, whole)
		}
		plain := content
		if in, err := openInput(bytes.NewReader(content)); err == nil {
			plain, _ = io.ReadAll(io.LimitReader(in, 1<<20))
			in.close()
		}
		last, n := int64(0), 0
		Read(bytes.NewReader(content), "f", func(e Entry) error {
			n++
			if e.Offset < last || e.Offset > int64(len(plain)) && len(plain) < 1<<20 {
				t.Fatalf("entry %d is at %d, after %d", n, e.Offset, last)
			}
			if want := int64(1 + bytes.Count(plain[:min(e.Offset, int64(len(plain)))], []byte{'\n'})); e.Line != want && len(plain) < 1<<20 {
				t.Fatalf("entry %d is on line %d, not %d", n, want, e.Line)
			}
			last = e.Offset
			if e.Bad != nil && (e.Bad.Err == nil || e.Bad.Size < int64(len(e.Bad.Raw))) {
				t.Fatalf("entry %d: %+v", n, e.Bad)
			}
			return nil
		})
		if event, err := DecodeLambda(content); err == nil && bytes.Equal(plain, content) {
			if len(event.Entries) != n {
				t.Fatalf("%d entries as a payload, %d as a file:\n%s", len(event.Entries), n, whole)
			}
		}
	})
}

// One byte of one line may be anything: what is on the other lines is read.
func TestOneByteWrong(t *testing.T) {
	const at = 2
	lines := streamRecords(1, 4)
	for i := range len(lines[at]) {
		for j, c := range []byte("{}[]\",:\\x0 \n\x00\xff") {
			if testing.Short() && i%5 != j%5 {
				continue
			}
			damaged := []byte(lines[at])
			damaged[i] = c
			content := strings.Join([]string{lines[0], lines[1], string(damaged), lines[3]}, "\n")
			good, _ := positions(t, []byte(content))
			for _, n := range []int{1, 2, 4} {
				if !strings.Contains(fmt.Sprint(good), fmt.Sprint(" ", n, "0000000000")) && !strings.Contains(fmt.Sprint(good), fmt.Sprint("[", n, "0000000000")) {
					t.Fatalf("with %q at %d of line %d only %v are read", c, i, at+1, good)
				}
			}
		}
	}
}
