package sim

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"weir/internal/events"
	"weir/internal/lambda"
	"weir/internal/owntable"
	"weir/internal/reader"
	"weir/internal/store"
	"weir/internal/value"
)

// mapping is the event source mapping between a stream and the function. It invokes the
// function with batches, one at a time for each queue, until all are processed.
type mapping struct {
	*world
	apart  bool // each shard has processes of its own
	beside bool // a process reads the same streams now and then
	batch  int  // the most records in an invocation during the rough part
	queues []*queue
	left   string // short key of the shard whose position last left a row
	// The schedule invokes the function too, where documents may be pending.
	ticks   *dice
	ticking *fiber
}

// queue is a shard whose records the function gets in order.
type queue struct {
	table *table
	shard *shard
	taken int // how many of the shard's records are there for the function
	first int // how many of them it never gets
	done  int // how many of them are processed
	most  int // the most that were, before it went back
	state json.RawMessage
	calls []*invocation
	try   int // size of the next batch; 0: any
	fails int
}

// invocation is one call of the function.
type invocation struct {
	*fiber
	from, n int
	answer  []byte
	old     bool // its time is over; the mapping does not wait for its answer
}

// newMapping makes the mapping of a function. The seed chooses its batch size, and whether shards
// have processes of their own; such processes die less often.
func newMapping(w *world) *mapping {
	m := &mapping{world: w, ticks: newDice(w.seed, "ticks", 0)}
	d := newDice(w.seed, "mapping", 0)
	m.batch = pick(d, []int{3, 20, 20, 20})
	if m.apart = d.chance(0.6); m.apart { // and these live long
		for _, k := range []Kind{CrashBefore, CrashAfter, CrashBetween, Zombie} {
			w.faults.rates[k] /= 20
		}
	}
	m.beside = !w.built && d.chance(0.4)
	return m
}

// toggleReader begins or ends a process that reads the streams beside the function.
func (m *mapping) toggleReader() {
	for _, n := range m.nodes {
		if n.handler == nil && !n.builds {
			if m.sched.chance(0.2) {
				n.killProcess()
			}
			return
		}
	}
	if m.sched.chance(0.5) {
		m.countReached("a process reads beside a function")
		n := m.startProcess()
		r := n.newRunner(nil)
		r.MostPositions = 1
		n.startFollower(&reader.Follower{Runner: r, Source: kept{r.Store}})
	}
}

// kept is a source of which nothing is forgotten because it was read, as of DynamoDB.
type kept struct{ store.Source }

func (kept) Trim(context.Context, string, string, events.Position) error { return nil }

// findRecords finds new shards and new records.
func (m *mapping) findRecords() {
	for _, mt := range m.model.Tables {
		t := m.base.tables[mt.Name]
		for _, s := range t.shards {
			if !slices.ContainsFunc(m.queues, func(q *queue) bool { return q.shard == s }) {
				m.queues = append(m.queues, &queue{table: t, shard: s})
			}
		}
	}
	for _, q := range m.queues {
		q.taken = max(q.taken, min(q.shard.seen, len(q.shard.records)))
	}
}

// isReady reports whether a queue has something for the function, and the shard's parent is
// finished.
func (m *mapping) isReady(q *queue) bool {
	if q.done == q.taken || slices.ContainsFunc(q.calls, func(c *invocation) bool { return !c.old }) {
		return false
	}
	return !slices.ContainsFunc(m.queues, func(p *queue) bool {
		return p.shard.ID == q.shard.Parent && p.table == q.table && p.done < len(p.shard.records)
	})
}

// trimAnswered expires some of the first records that the function has answered for. An
// invocation still in progress may hold some of them.
func (m *mapping) trimAnswered() {
	for _, q := range m.queues {
		if q.done > q.shard.trimmed && m.strikeWeighted(Trim, 5) {
			m.expireRecords(q.shard, 1+m.faults.dice.n(q.done-q.shard.trimmed))
		}
	}
}

// pollQueues invokes the function for one of the ready queues, and reports whether there was one.
func (m *mapping) pollQueues() bool {
	m.findRecords()
	m.deliverAgain()
	if m.tickSchedule() {
		return true
	}
	var can []*queue
	for _, q := range m.queues {
		if m.isReady(q) {
			can = append(can, q)
		}
	}
	if len(can) == 0 {
		return false
	}
	q := pick(m.sched, can)
	n := min(q.taken-q.done, 1+m.sched.n(m.batch))
	if m.calm {
		n = min(q.taken-q.done, 200)
	}
	if q.try > 0 {
		n = min(n, q.try)
	}
	m.invokeFunction(q, q.done, n)
	return true
}

// tickSchedule lets the schedule invoke the function now and then, and when all is calm as long as documents are pending.
func (m *mapping) tickSchedule() bool {
	pending := slices.ContainsFunc(owntable.Pending(m.model.Name, ""), func(key string) bool {
		p := m.base.tables[owntable.TableName].parts[partName(value.OfString(key))]
		return p != nil && len(p.rows) > 0
	})
	if m.ticking != nil || len(m.model.Searches) == 0 || m.calm && !pending || !m.calm && !m.ticks.chance(0.05) {
		return false
	}
	if pending {
		m.countReached("documents are pending")
	}
	in := m.idleInstance(&queue{})
	in.startFiber("schedule", func(f *fiber) error {
		f.pause()
		in.link.f, f.began = f, m.base.writes
		_, err := in.handler.Invoke(context.Background(), []byte(`{"detail-type":"Scheduled Event","time":"2026-01-01T00:01:00Z"}`))
		return err
	})
	m.ticking, in.busy = in.fibers[len(in.fibers)-1], true
	return true
}

// invokeFunction begins an invocation with n records of a queue. It runs as a fiber, and handleEnded takes
// its answer.
func (m *mapping) invokeFunction(q *queue, from, n int) {
	in := m.idleInstance(q)
	c := &invocation{from: from, n: n}
	payload := m.eventPayload(q, from, n)
	in.startFiber(fmt.Sprintf("%s/%s.%d+%d", q.shard.ID[16:], q.table.Name, from, n), func(f *fiber) error {
		f.pause()
		in.link.f, f.began = f, m.base.writes
		answer, err := in.handler.Invoke(context.Background(), payload)
		c.answer = answer
		return err
	})
	c.fiber = in.fibers[len(in.fibers)-1]
	in.busy = true
	q.calls = append(q.calls, c)
}

// idleInstance is an idle process of the function, or a new one. If each shard has processes of
// its own, a process knows of the other shards what it read when it began.
func (m *mapping) idleInstance(q *queue) *node {
	for _, n := range m.nodes {
		if n.handler != nil && !n.busy && !n.builds && (!m.apart || n.of == q.shard) && m.sched.chance(0.8) {
			return n
		}
	}
	n := m.startProcess()
	n.of = q.shard
	n.link = &link{world: m.world, n: n}
	r := n.runnerOver(n.link)
	h := lambda.New(r, func(context.Context) error { return nil })
	h.Portion, h.Runner.MostPositions = 1+m.sched.n(5), 1
	n.handler = h
	return n
}

// handleEnded handles the fibers of an instance that have ended.
func (m *mapping) handleEnded(n *node) {
	if m.ticking != nil && m.ticking.over && slices.Contains(n.fibers, m.ticking) {
		m.ticking, n.busy = nil, false
	}
	for _, q := range m.queues {
		for _, c := range slices.Clone(q.calls) {
			if !slices.Contains(n.fibers, c.fiber) || !c.fiber.over {
				continue
			}
			q.calls = slices.DeleteFunc(q.calls, func(o *invocation) bool { return o == c })
			n.busy = false
			if !c.old {
				m.noteAnswer(q, c)
			}
		}
	}
	n.fibers = slices.DeleteFunc(n.fibers, func(f *fiber) bool { return f.over })
}

// abandonSlow gives up waiting for the answers of paused invocations. Their processes end with the
// current call, which may still happen.
func (m *mapping) abandonSlow() {
	for _, q := range m.queues {
		for _, c := range q.calls {
			if c.asleep > 0 && !c.old {
				c.old, c.doomed = true, true
			}
		}
	}
}

// noteAnswer moves a queue on behind the processed records.
func (m *mapping) noteAnswer(q *queue, c *invocation) {
	if c.from != q.done { // another invocation was first
		return
	}
	if c.crashed || c.err != nil {
		if m.calm { // in the rough part failures are intended
			q.fails++
		}
		if m.traceStep("mapping", fmt.Sprint("failed: ", c.err), nil); q.fails > 40 {
			m.addFailure(Stuck, "stuck: the function fails again and again: %v", c.err)
		}
		if q.try = 0; c.n > 1 && m.strikeWeighted(Bisect, 5) {
			q.try = (c.n + 1) / 2
		}
		return
	}
	var a struct {
		BatchItemFailures []struct{ ItemIdentifier string }
		State             json.RawMessage
	}
	if err := json.Unmarshal(c.answer, &a); err != nil {
		m.addFailure(Stuck, "the function's answer %q: %v", c.answer, err)
		return
	}
	to := c.from + c.n
	for _, f := range a.BatchItemFailures {
		p, _ := events.ParsePosition(f.ItemIdentifier)
		at := slices.IndexFunc(q.shard.records[c.from:c.from+c.n], func(r events.Record) bool { return r.Position == p })
		m.faults.countCaused(PartialReply)
		to = min(to, c.from+max(at, 0))
	}
	q.most = max(q.most, to)
	if m.strike(Redelivery) { // it loses the answer
		if m.sched.chance(0.5) {
			q.moveBack(m.sched.n(mostBack), m.clock)
		}
		return
	}
	q.done, q.try, q.fails = to, 0, 0
	m.maySplit(q.table, q.shard, 4) // only processes that get its children know them
	q.state = a.State
	if m.sched.chance(0.1) && to == c.from+c.n {
		q.state = nil // a new window
	}
}

// moveBack moves a queue back by up to n records, as if the mapping had lost its position. It
// stops at records that have expired or are more than an hour old. It may be called before the queue has come to where
// it was, and then goes back less.
func (q *queue) moveBack(n int, now time.Time) {
	for ; n > 0 && q.done > q.first && q.most-q.done < mostBack; n-- {
		at := q.done - 1
		if at < q.shard.trimmed || now.Sub(q.shard.records[at].Time) > time.Hour {
			return
		}
		q.done--
	}
}

// isOpen reports whether a shard has records left that the function has not answered for, or may get more.
func (m *mapping) isOpen(shardKey string) bool {
	return slices.ContainsFunc(m.queues, func(q *queue) bool {
		return owntable.ShardKey(q.table.Name, q.shard.ID) == shardKey && (!q.shard.Closed || q.done < q.taken)
	})
}

// deliverAgain may deliver records of a shard again whose position has just left a row of weir's
// own table.
func (m *mapping) deliverAgain() {
	shardKey := m.left
	m.left = ""
	for _, q := range m.queues {
		if owntable.ShardKey(q.table.Name, q.shard.ID) != shardKey || len(q.calls) > 0 {
			continue
		}
		was := q.done
		if q.moveBack(mostBack, m.clock); q.done == was || !m.strikeWeighted(Redelivery, 10) {
			q.done = was
		}
	}
}

// mostBack is how many records a mapping goes back at most: fewer than a function
// remembers.
const mostBack = 60

// eventPayload is the event in the form that Lambda sends it.
func (m *mapping) eventPayload(q *queue, from, n int) []byte {
	b := []byte(`{"Records":[`)
	for i := range n {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendRecord(b, &q.shard.records[from+i])
	}
	state := q.state
	if state == nil {
		state = json.RawMessage("{}")
	}
	b = fmt.Appendf(b, `],"window":{"start":"2026-01-02T03:00:00Z","end":"2026-01-02T03:05:00Z"},"state":%s,"shardId":%q,"isFinalInvokeForWindow":false,"isWindowTerminatedEarly":false}`, state, q.shard.ID)
	return b
}

// appendRecord appends a record in the form of a stream's event.
func appendRecord(b []byte, r *events.Record) []byte {
	b = fmt.Appendf(b, `{"eventID":%q,"eventName":%q,"eventVersion":"1.1","eventSource":"aws:dynamodb","awsRegion":"eu-west-1","dynamodb":{"ApproximateCreationDateTime":%d,"Keys":`, r.ID, r.Event(), r.Time.Unix())
	b = value.AppendTypedItem(b, r.Keys)
	if r.New != nil {
		b = value.AppendTypedItem(append(b, `,"NewImage":`...), r.New)
	}
	if r.Old != nil {
		b = value.AppendTypedItem(append(b, `,"OldImage":`...), r.Old)
	}
	b = fmt.Appendf(b, `,"SequenceNumber":%q,"SizeBytes":1,"StreamViewType":"NEW_AND_OLD_IMAGES"}`, r.Position.String())
	if r.Expired {
		b = append(b, `,"userIdentity":{"type":"Service","principalId":"dynamodb.amazonaws.com"}`...)
	}
	return fmt.Appendf(b, `,"eventSourceARN":"arn:aws:dynamodb:eu-west-1:123456789012:table/%s/stream/2026-01-02T00:00:00.000"}`, r.Table)
}

var _ store.Store = (*link)(nil)

// Load returns none: rows come with their stream records here.
func (l *link) Load(context.Context, store.LoadOptions) (store.Load, error) { return nil, nil }
