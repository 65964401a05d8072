package dynamodb

import (
	"net/http"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
)

// clock compares the clock of this machine with that of the service, which each answer
// carries in its Date header.
// It may be used by many goroutines.
type clock struct {
	now   func() time.Time
	ahead atomic.Int64
	told  atomic.Bool // an answer has told its time
}

// clockSlack is the difference that is none: the header has whole seconds, and answers take
// a while.
const clockSlack = 30 * time.Second

// noteTime takes in the time of an answer.
// A header that cannot be read changes nothing.
func (c *clock) noteTime(date string) {
	at, err := http.ParseTime(date)
	if err != nil {
		return
	}
	ahead := c.now().Sub(at)
	if ahead.Abs() < clockSlack {
		ahead = 0
	}
	c.ahead.Store(int64(ahead))
	c.told.Store(true)
}

// by is how far the clock of this machine is ahead.
// It is 0 before the first answer, and negative if the machine is behind.
func (c *clock) by() time.Duration { return time.Duration(c.ahead.Load()) }

// clocked is an HTTP client whose answers tell the time.
type clocked struct {
	next  aws.HTTPClient
	clock *clock
}

// Do sends a request.
func (c *clocked) Do(r *http.Request) (*http.Response, error) {
	resp, err := c.next.Do(r)
	if err == nil {
		c.clock.noteTime(resp.Header.Get("Date"))
	}
	return resp, err
}
