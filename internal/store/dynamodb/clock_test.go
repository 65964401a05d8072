package dynamodb

import (
	"net/http"
	"testing"
	"time"

	"weir/internal/store"
)

// dated answers with the time of a service whose clock is right.
type dated struct {
	*service
	date string
}

func (d *dated) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := d.service.RoundTrip(r)
	if err == nil {
		resp.Header.Set("Date", d.date)
	}
	return resp, err
}

// TestClock: the store says how far the clock of this machine is from the service's, and what
// goes by store.Clock goes by the service's.
func TestClock(t *testing.T) {
	right := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, wrong := range []time.Duration{0, 2 * time.Second, 10 * 24 * time.Hour, -10 * 24 * time.Hour, -time.Minute} {
		now := func() time.Time { return right.Add(wrong) }
		s := opened(&dated{&service{answers: []answer{good}}, right.Format(http.TimeFormat)}, Options{Now: now})
		if got := store.Clock(now, s)(); !got.Equal(now()) {
			t.Errorf("before the first answer it is %v", got)
		}
		if _, err := s.Get(t.Context(), []store.Ref{thing("a")}); err != nil {
			t.Fatal(err)
		}
		if off := store.Clock(now, s)().Sub(right).Abs(); off > clockSlack {
			t.Errorf("a clock that is wrong by %v is wrong by %v", wrong, off)
		}
	}
}

// TestSkewedRequestIsSentAgain: the service refuses a request that was signed by a wrong clock.
func TestSkewedRequestIsSentAgain(t *testing.T) {
	skewed := answer{400, `{"__type":"com.amazon.coral.service#InvalidSignatureException","message":"Signature expired: 20300101T000000Z is now earlier than 20300110T000000Z"}`, nil}
	s, sv := fake(skewed, good)
	if out, err := s.Write(t.Context(), []store.Write{addThing("a")}); err != nil || out[0].Err != nil || len(sv.seen) != 2 {
		t.Errorf("%v, %+v, %d requests", err, out, len(sv.seen))
	}
	wrongKey := answer{400, `{"__type":"com.amazon.coral.service#InvalidSignatureException","message":"The request signature we calculated does not match"}`, nil}
	s, sv = fake(wrongKey)
	if _, err := s.Write(t.Context(), []store.Write{addThing("a")}); err == nil || len(sv.seen) != 1 {
		t.Errorf("%v, %d requests", err, len(sv.seen))
	}
}
