package dynamodb

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	streams "github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"

	"weir/internal/events"
	"weir/internal/parallel"
	"weir/internal/seq"
	"weir/internal/store"
	"weir/internal/value"
)

// maxRecords is the maximum of records in a page of a stream.
const maxRecords = 1000

// Shards lists the shards that DynamoDB still has of the table's streams, parents
// before children. A parent that is not in the list has been closed, and its records
// are gone.
func (s *Store) Shards(ctx context.Context, table string) ([]store.Shard, error) {
	if err := s.beginCall(ctx); err != nil {
		return nil, fmt.Errorf("shards: %w", err)
	}
	arns, err := s.streamsOf(ctx, table)
	var found []streams.Shard
	if err == nil {
		found, err = s.describeAll(ctx, table, arns)
	}
	if err != nil {
		return nil, fmt.Errorf("shards of %s: %w", table, streamError(err))
	}
	return inOrder(found), nil
}

// Streams returns the labels of the table's streams that can be read, the latest last;
// labels sort in that order. A change between two streams is in neither. A
// stream that was switched off can be read for a day, and its shards are listed for as
// long. Streams that were off when the store was opened are found only by their labels
// in met.
func (s *Store) Streams(ctx context.Context, table string, met ...string) (labels []string, err error) {
	if err := s.beginCall(ctx); err != nil {
		return nil, fmt.Errorf("streams: %w", err)
	}
	arns, err := s.streamsOf(ctx, table)
	if err != nil {
		return nil, fmt.Errorf("the streams of %s: %w", table, streamError(err))
	}
	of, _, _ := strings.Cut(arns[0], beforeLabel)
	others := seq.Map(met, func(label string) string { return of + beforeLabel + label })
	for _, arn := range s.noteStreams(table, others, nil) {
		_, label, _ := strings.Cut(arn, beforeLabel)
		labels = append(labels, label)
	}
	return labels, nil
}

// Continues compares the sequence numbers at which the shards of the earlier stream end with those at which the shards of
// the other begin. DynamoDB does not say that a stream that is switched on again counts on. The earlier one is there for a day.
func (s *Store) Continues(ctx context.Context, table, earlier, label string) (bool, error) {
	if err := s.beginCall(ctx); err != nil {
		return false, fmt.Errorf("comparing streams: %w", err)
	}
	above, err := s.continues(ctx, table, earlier, label)
	return above, store.Wrap(streamError(err), "comparing two streams of %s", table)
}

func (s *Store) continues(ctx context.Context, table, earlier, label string) (bool, error) {
	arn, err := s.latest(ctx, table)
	if err != nil {
		return false, err
	}
	of, _, _ := strings.Cut(arn, beforeLabel)
	was, _, err := s.describeStream(ctx, of+beforeLabel+earlier)
	if errors.Is(named(err), store.ErrNoTable) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	is, _, err := s.describeStream(ctx, of+beforeLabel+label)
	if err != nil {
		return false, err
	}
	if len(is) == 0 {
		return false, errors.New("the one that is on has no shard yet")
	}
	var last events.Position
	for i := range was {
		at, ok := bound(&was[i], func(r *streams.SequenceNumberRange) *string { return r.EndingSequenceNumber })
		if !ok {
			return false, nil
		}
		if last.Compare(at) < 0 {
			last = at
		}
	}
	for i := range is {
		at, ok := bound(&is[i], func(r *streams.SequenceNumberRange) *string { return r.StartingSequenceNumber })
		if !ok || at.Compare(last) <= 0 {
			return false, nil
		}
	}
	return len(was) > 0, nil
}

// bound is a bound of a shard's sequence numbers; ok is false if the service does not say it.
func bound(of *streams.Shard, which func(*streams.SequenceNumberRange) *string) (at events.Position, ok bool) {
	if of.SequenceNumberRange == nil || which(of.SequenceNumberRange) == nil {
		return at, false
	}
	at, err := events.ParsePosition(*which(of.SequenceNumberRange))
	return at, err == nil
}

// beforeLabel is the text before the label in a stream's ARN.
const beforeLabel = "/stream/"

// noteStreams adds streams to those known of a table, drops some, and returns the rest.
// The result is the store's own: callers do not change it.
func (s *Store) noteStreams(table string, there, gone []string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := slices.Concat(s.arns[table], there)
	slices.Sort(all) // they differ only in their labels
	s.arns[table] = slices.DeleteFunc(slices.Compact(all), func(arn string) bool { return slices.Contains(gone, arn) })
	return s.arns[table]
}

// describeAll lists the shards of a table's streams. It remembers which streams exist,
// and the stream of each shard.
func (s *Store) describeAll(ctx context.Context, table string, arns []string) (all []streams.Shard, err error) {
	of, there, gone := map[string]string{}, []string(nil), []string(nil)
	for left := slices.Clone(arns); len(left) > 0; left = left[1:] {
		found, on, err := s.describeStream(ctx, left[0])
		switch over := errors.Is(named(err), store.ErrNoTable); {
		case over: // its day is over
			gone = append(gone, left[0])
		case err != nil:
			return nil, err
		default:
			there = append(there, left[0])
		}
		for i := range found {
			of[aws.ToString(found[i].ShardId)] = left[0]
		}
		all = append(all, found...)
		if on || len(left) > 1 {
			continue
		}
		latest, err := s.latest(ctx, table)
		switch {
		case errors.Is(err, store.ErrNoTable) && len(there) > 0: // it is off, or the table is gone
		case err != nil:
			return nil, err
		case latest > left[0]:
			left = append(left, latest)
		}
	}
	if len(there) == 0 {
		return nil, fmt.Errorf("the stream of table %s is not there: %w", table, store.ErrNoTable)
	}
	s.noteStreams(table, there, gone)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.shards[table] = of
	// Streams make new shards for ever, so cursors of old ones must go.
	maps.DeleteFunc(s.lines, func(at line, _ *cursor) bool { return at.table == table && of[at.shard] == "" })
	return all, nil
}

// describeStream lists the shards of one stream; on says whether the stream still gets
// records.
func (s *Store) describeStream(ctx context.Context, arn string) (all []streams.Shard, on bool, err error) {
	in := &dynamodbstreams.DescribeStreamInput{StreamArn: &arn}
	for {
		out, err := asked(ctx, s, soon, s.streams.DescribeStream, in)
		if err != nil {
			return nil, false, err
		}
		d := out.StreamDescription
		all = append(all, d.Shards...)
		if in.ExclusiveStartShardId = d.LastEvaluatedShardId; in.ExclusiveStartShardId == nil {
			return all, d.StreamStatus != streams.StreamStatusDisabling && d.StreamStatus != streams.StreamStatusDisabled, nil
		}
	}
}

// inOrder sorts shards, each once, so that a parent comes before its children.
// A parent that the service no longer lists is left out; its children keep its id as Parent.
func inOrder(found []streams.Shard) []store.Shard {
	byID := make(map[string]*streams.Shard, len(found))
	for i := range found {
		byID[aws.ToString(found[i].ShardId)] = &found[i]
	}
	out := make([]store.Shard, 0, len(found))
	done := make(map[string]bool, len(found))
	var visit func(id string)
	visit = func(id string) {
		sh := byID[id]
		if sh == nil || done[id] {
			return
		}
		done[id] = true
		visit(aws.ToString(sh.ParentShardId))
		r := sh.SequenceNumberRange
		out = append(out, store.Shard{ID: id, Parent: aws.ToString(sh.ParentShardId), Closed: r != nil && r.EndingSequenceNumber != nil})
	}
	for i := range found {
		visit(aws.ToString(found[i].ShardId))
	}
	return out
}

// streamsOf returns the known streams of the table, the latest last; at first only the
// current one.
func (s *Store) streamsOf(ctx context.Context, table string) ([]string, error) {
	s.mu.Lock()
	arns := s.arns[table]
	s.mu.Unlock()
	if len(arns) > 0 {
		return arns, nil
	}
	arn, err := s.latest(ctx, table)
	if err != nil {
		return nil, err
	}
	return s.noteStreams(table, []string{arn}, nil), nil
}

// latest is the table's current stream.
// A stream that was switched off is none, although its records can be read for 24 hours: Streams
// lists it.
func (s *Store) latest(ctx context.Context, table string) (arn string, err error) {
	t, err := s.table(table)
	if err != nil {
		return "", err
	}
	found, err := s.tableThere(ctx, t.Name)
	switch {
	case err != nil:
		return "", err
	case found == nil:
		return "", fmt.Errorf("table %s: %w", table, store.ErrNoTable)
	case found.StreamSpecification == nil || !aws.ToBool(found.StreamSpecification.StreamEnabled):
		return "", fmt.Errorf("table %s has no stream: %w", table, store.ErrNoTable)
	}
	return aws.ToString(found.LatestStreamArn), nil
}

// streamOf is the stream to which a shard belongs, as last listed.
// A shard that was never listed here is looked for in the newest stream.
func (s *Store) streamOf(ctx context.Context, table, shard string) (string, error) {
	s.mu.Lock()
	arn := s.shards[table][shard]
	s.mu.Unlock()
	if arn != "" {
		return arn, nil
	}
	arns, err := s.streamsOf(ctx, table)
	if err != nil {
		return "", err
	}
	return arns[len(arns)-1], nil
}

// streamError translates errors of the streams' service into those of the contract.
func streamError(err error) error {
	var trimmed *streams.TrimmedDataAccessException
	if errors.As(err, &trimmed) {
		return &serviceError{store.ErrTrimmed, trimmed.ErrorMessage()}
	}
	if known := named(err); known != nil {
		return known
	}
	return err
}

// line names a shard that is being read.
type line struct{ table, shard string }

// cursor is how far a shard has been read: the iterator after a position.
type cursor struct {
	after    events.Position
	iterator *string // nil if ended: the shard has been read to its end
	ended    bool
	read     time.Time
}

// Read returns a page of a shard, and remembers the iterator for the next page. The
// zero position means the oldest record that is left.
// A page without records and without End means that there is nothing new yet. Records that only announce a removal
// are left out. The error wraps store.ErrTrimmed if the stream no longer has the record after the position.
func (s *Store) Read(ctx context.Context, table, shard string, after events.Position, max int) (store.Records, error) {
	if err := s.beginCall(ctx); err != nil {
		return store.Records{}, fmt.Errorf("reading the stream: %w", err)
	}
	arn, err := s.streamOf(ctx, table, shard)
	var page store.Records
	if err == nil {
		page, err = s.readShard(ctx, arn, line{table, shard}, after, max)
	}
	return page, store.Wrap(streamError(err), "reading the stream of %s, shard %s after %v", table, shard, after)
}

// readShard returns the records of a shard after a position, from the iterator that the last
// call left if it stands there, and otherwise from a new one. A shard that was read to its end
// stays so: no request is made.
// After an error the cursor is not kept, so the next call makes a new iterator.
func (s *Store) readShard(ctx context.Context, arn string, at line, after events.Position, max int) (page store.Records, err error) {
	c := s.takeCursor(at)
	if c == nil || c.after != after {
		var last time.Time
		if c != nil {
			last = c.read
		}
		c = &cursor{after: after, read: last}
	}
	if c.ended {
		s.keep(at, c)
		return store.Records{End: true}, nil
	}
	if err := s.awaitPace(ctx, c); err != nil {
		return page, err
	}
	out, err := s.readRecords(ctx, arn, at.shard, c, max)
	if err != nil {
		return page, err
	}
	page.Records = make([]events.Record, 0, len(out.Records))
	for i := range out.Records {
		r, err := recordOf(at.table, &out.Records[i])
		if err != nil {
			return store.Records{}, err
		}
		if r.Old != nil && value.EqualItems(r.Old, r.New) {
			continue // it announces a removal
		}
		page.Records = append(page.Records, r)
		c.after = r.Position
	}
	c.iterator, c.ended = out.NextShardIterator, out.NextShardIterator == nil
	page.End, page.More = c.ended, len(page.Records) > 0 && !c.ended
	s.keep(at, c)
	if len(page.Records) == 0 && len(out.Records) > 0 && !page.End {
		return s.readShard(ctx, arn, at, after, max) // an empty page would mean no records
	}
	return page, nil
}

// takeCursor gives a cursor to one reader at a time; another reader of the same shard makes
// its own meanwhile.
func (s *Store) takeCursor(at line) *cursor {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.lines[at]
	delete(s.lines, at)
	return c
}

// keep saves a cursor for the next reader of the shard.
func (s *Store) keep(at line, c *cursor) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lines[at] = c
}

// awaitPace waits for the minimum time between two reads of a shard.
func (s *Store) awaitPace(ctx context.Context, c *cursor) error {
	wait := s.opts.ReadInterval - time.Since(c.read)
	if wait > 0 && !c.read.IsZero() {
		if err := parallel.Sleep(ctx, wait); err != nil {
			return err
		}
	}
	c.read = time.Now()
	return nil
}

// readRecords reads a page; it replaces an iterator that has expired.
// An iterator lives 15 minutes (GetShardIterator). A new one begins behind the last record that was
// read, so no record is lost or read twice by it.
func (s *Store) readRecords(ctx context.Context, arn, shard string, c *cursor, max int) (out *dynamodbstreams.GetRecordsOutput, err error) {
	err = s.sendUntilDone(ctx, soon, func(ctx context.Context) error {
		if c.iterator == nil {
			if c.iterator, err = s.iterator(ctx, arn, shard, c.after); err != nil {
				return err
			}
		}
		out, err = s.streams.GetRecords(ctx, &dynamodbstreams.GetRecordsInput{ShardIterator: c.iterator, Limit: aws.Int32(int32(min(max, maxRecords)))})
		var expired *streams.ExpiredIteratorException
		var trimmed *streams.TrimmedDataAccessException
		// The record that was the oldest when the iterator was made may be gone by now.
		if errors.As(err, &expired) || errors.As(err, &trimmed) && c.after.IsZero() {
			c.iterator = nil
			return fmt.Errorf("%w: %w", errAgain, err)
		}
		return err
	})
	return out, err
}

// iterator returns an iterator that begins after a position; the zero position is the oldest
// record that the stream still has.
func (s *Store) iterator(ctx context.Context, arn, shard string, after events.Position) (*string, error) {
	in := &dynamodbstreams.GetShardIteratorInput{StreamArn: &arn, ShardId: &shard, ShardIteratorType: streams.ShardIteratorTypeTrimHorizon}
	if !after.IsZero() {
		in.ShardIteratorType = streams.ShardIteratorTypeAfterSequenceNumber
		in.SequenceNumber = aws.String(sequenceNumber(after))
	}
	out, err := s.streams.GetShardIterator(ctx, in)
	if err != nil {
		return nil, err
	}
	return out.ShardIterator, nil
}

// sequenceNumber is the position in DynamoDB's form, with at least 21 digits.
func sequenceNumber(p events.Position) string {
	s := p.String()
	for len(s) < 21 {
		s = "0" + s
	}
	return s
}

// ttlPrincipal is the principal in the records of rows that TTL deleted.
const ttlPrincipal = "dynamodb.amazonaws.com"

// recordOf converts a record of the stream. An error means an answer that DynamoDB
// never gives.
func recordOf(table string, r *streams.Record) (out events.Record, err error) {
	out.Table, out.ID = table, aws.ToString(r.EventID)
	if r.Dynamodb == nil {
		return out, fmt.Errorf("record %s of %s has no content", out.ID, table)
	}
	out.Position, err = events.ParsePosition(aws.ToString(r.Dynamodb.SequenceNumber))
	origin := originOf(r.Dynamodb)
	if err == nil {
		out.Keys, err = itemOf(r.Dynamodb.Keys, fromStream)
	}
	if err == nil {
		out.Old, err = image(r.Dynamodb.OldImage)
	}
	if err == nil {
		out.New, err = image(r.Dynamodb.NewImage)
	}
	if err != nil {
		return out, fmt.Errorf("record %s of %s: %w", aws.ToString(r.Dynamodb.SequenceNumber), table, err)
	}
	if t := r.Dynamodb.ApproximateCreationDateTime; t != nil {
		out.Time = t.UTC()
	}
	out.Expired = r.EventName == streams.OperationTypeRemove && r.UserIdentity != nil &&
		aws.ToString(r.UserIdentity.Type) == "Service" && aws.ToString(r.UserIdentity.PrincipalId) == ttlPrincipal
	if origin != nil {
		out.Time, out.Origin, out.Expired = origin.Time, origin.Position, origin.Expired
	}
	return out, nil
}

// image is nil for an empty image: no item is without attributes.
func image(m map[string]streams.AttributeValue) (out value.Item, err error) {
	if len(m) == 0 {
		return nil, nil
	}
	return itemOf(m, fromStream)
}

// Changed returns nil: DynamoDB does not notify readers.
func (s *Store) Changed(table string) (<-chan struct{}, error) {
	if s.closed.Load() {
		return nil, store.ErrClosed
	}
	_, err := s.table(table)
	return nil, err
}

// Horizon returns the zero position, which Read takes for the oldest record.
func (s *Store) Horizon(ctx context.Context, table, _ string) (events.Position, error) {
	if err := s.beginCall(ctx); err != nil {
		return events.Position{}, fmt.Errorf("horizon: %w", err)
	}
	_, err := s.table(table)
	return events.Position{}, err
}

// Trim does nothing: DynamoDB deletes records by their age.
func (s *Store) Trim(ctx context.Context, table, _ string, _ events.Position) error {
	if err := s.beginCall(ctx); err != nil {
		return fmt.Errorf("trimming the stream: %w", err)
	}
	_, err := s.table(table)
	return err
}
