package writeapi

import (
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"weir/internal/ingest"
	"weir/internal/model"
	"weir/internal/value"
)

// maxBody is how many bytes the body of a request may have.
const maxBody = 1 << 20

// maxIdempotencyKey is how long an idempotency key may be, in bytes.
const maxIdempotencyKey = 255

// entity is a kind of row that may be written.
// It is made once for each entity and not changed, so requests share it.
type entity struct {
	*model.Entity
	model *model.Model
	keys  []string
}

// newEntity returns an entity with the names of its key's fields.
func newEntity(m *model.Model, e *model.Entity) *entity { return &entity{e, m, e.KeyNames()} }

// typeOf is the type of a field as people give it.
func (e *entity) typeOf(name string) model.Type {
	if a := e.Attribute(name); a != nil {
		return a.Type
	}
	return e.Field(name).Type
}

// location is the path of a row.
// Every key field stands in the query string, escaped, so a GET of the path finds this row and no other.
func (e *entity) location(model string, row value.Item) string {
	params := make([]string, len(e.keys))
	for i, name := range e.keys {
		params[i] = url.QueryEscape(name) + "=" + url.QueryEscape(value.Scalar(e.Field(name).Stored(row)))
	}
	return "/v1/" + url.PathEscape(model) + "/" + url.PathEscape(e.Name) + "?" + strings.Join(params, "&")
}

// readCommand reads the command of a request.
// The body wins nowhere: a field of the key that stands in body and query string has to be the same in both.
// Nothing is checked against the model yet; that is the writer's part.
// Errors are about the request, for its sender.
func (e *entity) readCommand(w http.ResponseWriter, r *http.Request, op ingest.Op) (c ingest.Command, err error) {
	c = ingest.Command{Op: op, Entity: e.Name}
	if c.IfMatch, err = ifMatch(r); err != nil {
		return c, err
	}
	if c.IdempotencyKey, err = idempotencyKey(r); err != nil {
		return c, err
	}
	key, err := e.readQuery(r.URL.RawQuery)
	if err != nil {
		return c, err
	}
	types := []string{"application/json"}
	if op == ingest.Update {
		types = append(types, "application/merge-patch+json")
	}
	body, _, err := read(w, r, types)
	if err != nil {
		return c, err
	}
	if c.Item = key; len(body) > 0 || op != ingest.Delete {
		if c.Item, err = ingest.ReadItem(body); err != nil {
			return c, malformed(e.model, err)
		}
		if err := e.agree(c.Item, key); err != nil {
			return c, err
		}
		c.Item = key.With(c.Item...)
	}
	return c, nil
}

// malformed is 400 for a text that is no JSON, and other errors without hidden values.
func malformed(m *model.Model, err error) error {
	r, ok := err.(*ingest.Refusal)
	switch {
	case !ok:
		return err
	case r.Kind == ingest.NotJSON:
		return newRefusal(http.StatusBadRequest, "not-json", "the body "+r.Problems[0].Reason)
	}
	return r.Shown(m)
}

// agree refuses a body that names another row than the query string.
func (e *entity) agree(item, key value.Item) error {
	var wrong []mistake
	for _, k := range key {
		v := item.Get(k.Name)
		if !v.IsMissing() && !value.Same(v, k.Value) && value.Scalar(v) != value.Scalar(k.Value) {
			wrong = append(wrong, mistake{Pointer: ingest.Pointer(k.Name), Message: fmt.Sprintf("is another value than in the query string, %.100q", value.Scalar(k.Value))})
		}
	}
	if len(wrong) > 0 {
		return newRefusal(http.StatusUnprocessableEntity, "invalid", "the body and the query string name different rows", wrong...)
	}
	return nil
}

// readQuery reads the fields of the key that stand in the query string.
// Every mistake is reported at once, sorted by parameter.
func (e *entity) readQuery(raw string) (value.Item, error) {
	values, err := url.ParseQuery(raw)
	if err != nil {
		return nil, newRefusal(http.StatusBadRequest, "malformed", "the query string is not key=value&key=value with %-escapes")
	}
	var wrong []mistake
	say := func(name, format string, args ...any) {
		wrong = append(wrong, mistake{Parameter: name, Message: fmt.Sprintf(format, args...)})
	}
	var attrs []value.Attr
	for name, given := range values {
		text := given[0]
		switch {
		case !slices.Contains(e.keys, name):
			say(name, "is no field of the key of %s%s", e.Name, model.Meant(name, e.keys))
		case len(given) > 1:
			say(name, "is given more than once")
		case !utf8.ValidString(name + text):
			say(name, "is not UTF-8")
		default:
			v, err := parseParameter(e.typeOf(name), text)
			if err != nil {
				say(name, "%v", err)
			}
			attrs = append(attrs, value.Attr{Name: name, Value: v})
		}
	}
	if len(wrong) > 0 {
		slices.SortFunc(wrong, func(a, b mistake) int { return strings.Compare(a.Parameter, b.Parameter) })
		return nil, newRefusal(http.StatusUnprocessableEntity, "parameter", "parameters are not right", wrong...)
	}
	return value.NewItem(attrs...), nil
}

// parseParameter reads a parameter of a type.
// A type that has no form of its own in a query string is read as text; the writer then checks it.
func parseParameter(t model.Type, text string) (value.Value, error) {
	switch {
	case t == model.TypeNumber:
		v, err := value.ParseNumber(text)
		if err != nil {
			return v, fmt.Errorf("must be a number, not %.20q", text)
		}
		return v, nil
	case t == model.TypeBoolean && (text == "true" || text == "false"):
		return value.OfBool(text == "true"), nil
	}
	return value.OfString(text), nil
}

// read is the body of a request and its media type, which is one of the types.
// The caller owns the body. At most maxBody bytes are read; a longer body is 413. given is "" for a DELETE without a
// body.
func read(w http.ResponseWriter, r *http.Request, types []string) (body []byte, given string, err error) {
	body, err = io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if _, large := err.(*http.MaxBytesError); large {
		return nil, "", newRefusal(http.StatusRequestEntityTooLarge, "too-large", fmt.Sprintf("the body has more than %d bytes", maxBody))
	} else if err != nil {
		return nil, "", newRefusal(http.StatusBadRequest, "malformed", "the body does not come whole: "+err.Error())
	}
	if len(body) == 0 && r.Method == http.MethodDelete {
		return nil, "", nil
	}
	given, _, err = mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || !slices.Contains(types, given) {
		p := newRefusal(http.StatusUnsupportedMediaType, "media-type", fmt.Sprintf("the body must be %s, and its Content-Type is %.100q", strings.Join(types, " or "), r.Header.Get("Content-Type")))
		p.header = map[string]string{"Accept-" + strings.ToUpper(r.Method[:1]) + strings.ToLower(r.Method[1:]): strings.Join(types, ", ")}
		return nil, "", p
	}
	if coding := r.Header.Get("Content-Encoding"); coding != "" && !strings.EqualFold(coding, "identity") {
		return nil, "", newRefusal(http.StatusUnsupportedMediaType, "media-type", fmt.Sprintf("the body must come as it is, and its Content-Encoding is %.100q", coding))
	}
	return body, given, nil
}

// The two headers of a command, as they are described and as they are read.
var (
	idempotencyKeys = regexp.MustCompile(fmt.Sprintf("^[ -~]{1,%d}$", maxIdempotencyKey))
	ifMatches       = regexp.MustCompile(`^(\*|"[!#-~]+")$`)
)

// header is the text of a header, "" for one that was not sent. One that was sent
// empty, as by a client that has lost its value, is not one left out: a
// write that was to hold for one revision would hold for any.
func header(r *http.Request, name string, form *regexp.Regexp, say string) (string, error) {
	given := r.Header.Values(name)
	if len(given) == 0 {
		return "", nil
	}
	if text := strings.TrimSpace(given[0]); len(given) == 1 && form.MatchString(text) {
		return text, nil
	}
	return "", newRefusal(http.StatusBadRequest, "header", name+" must be "+say)
}

// ifMatch is the revision that a request is for.
func ifMatch(r *http.Request) (string, error) {
	if len(r.Header.Values("If-None-Match")) > 0 {
		return "", newRefusal(http.StatusBadRequest, "header", "If-None-Match is not possible here; POST makes a row only where there is none")
	}
	tag, err := header(r, "If-Match", ifMatches, "one ETag as it was given, in quotes, or *; without the header any row will do")
	if inner := strings.Trim(tag, `"`); inner != "*" {
		return inner, err
	}
	return tag, err // in quotes it is a row's, which none has
}

// idempotencyKey is the key of a request, "" for none.
func idempotencyKey(r *http.Request) (string, error) {
	return header(r, "Idempotency-Key", idempotencyKeys, fmt.Sprintf("one text of 1 to %d visible ASCII characters", maxIdempotencyKey))
}
