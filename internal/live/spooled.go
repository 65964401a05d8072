package live

import (
	"context"
	"errors"

	"weir/internal/events"
	"weir/internal/runner"
	"weir/internal/store"
)

// spooledAtOnce is how many records of a shard are read at a time.
const spooledAtOnce = 500

// Spooled hands over the records that the files of this process's shards still have and that every
// group has applied, in the order of their times. A spool keeps its last file, of about 32 MB, and
// removes the others once they are applied: so the shards begin at different times.
// It ends with the error of yield if that returns one. A shard that this process loses meanwhile, and
// a file that it removes, are left out from there on. It may be called while the files are written.
// It keeps one page of records of each shard in memory.
func (f *Following) Spooled(ctx context.Context, yield func(table string, record *events.Record) error) error {
	var all []*spoolCursor
	for _, h := range f.reader.holdings() {
		c := &spoolCursor{spool: h.spool, table: h.table}
		c.after, c.until = h.spool.kept()
		all = append(all, c)
	}
	for {
		var next *spoolCursor
		for _, c := range all {
			if err := c.fill(); err != nil {
				return err
			}
			if len(c.page) > 0 && (next == nil || c.page[0].Time.Before(next.page[0].Time)) {
				next = c
			}
		}
		if next == nil || ctx.Err() != nil {
			return ctx.Err()
		}
		record := &next.page[0]
		next.page = next.page[1:]
		if err := yield(next.table, record); err != nil {
			return err
		}
	}
}

// spoolCursor is how far the spool of a shard was read.
type spoolCursor struct {
	spool        *spool
	table        string
	after, until events.Position // it goes on after the one, and ends with the other
	page         []events.Record
}

// fill reads a page if none is left. At the end the page stays empty.
func (c *spoolCursor) fill() error {
	if len(c.page) > 0 || c.after.Compare(c.until) >= 0 {
		return nil
	}
	page, err := c.spool.read(c.table, c.after, spooledAtOnce)
	if errors.Is(err, runner.ErrElsewhere) || errors.Is(err, store.ErrTrimmed) || err == nil && len(page.Records) == 0 {
		c.after = c.until
		return nil
	}
	if err != nil {
		return err
	}
	c.page, c.after = page.Records, page.Records[len(page.Records)-1].Position
	for len(c.page) > 0 && c.page[len(c.page)-1].Position.Compare(c.until) > 0 {
		c.page = c.page[:len(c.page)-1]
	}
	return nil
}
