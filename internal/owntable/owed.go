package owntable

import (
	"time"

	"weir/internal/events"
	"weir/internal/store"
	"weir/internal/value"
)

// The rows of owed|MODEL|TABLE name what waits for a table that takes no writes: it must be done once it
// does. s is HASH of a target that is to be shown, and KIND|HASH of anything else. The consumer that
// cannot write leaves the row, and then the job of the table; the job does it and deletes the row. What is
// named again meanwhile is done again, as its row counts how often it was. There are as many rows as
// targets, copies, parts of sets, lists of followers and old rows of migrations that wait, of about 150 to 400 bytes, and one for each entry of a
// history and each notification, with what it is made from.
const (
	owedKind     = "kind"
	owedTable    = "t"
	owedKey      = "key"
	owedRule     = "rule"
	owedOf       = "of"    // table and key of the source row
	owedOfKey    = "ofkey" //
	owedGone     = "gone"  // the newest change removes the copy
	owedAttr     = "a"
	owedList     = "list"
	owedMade     = "made" // table and key of a row that a migration made
	owedMadeKey  = "madekey"
	owedShard    = "shard"
	owedTime     = "time"
	owedRecord   = "record"
	owedTimes    = Count
	jobOutage    = "outage" // the table
	outageSince  = "since"
	outageStarts = Count // how often the job was started
)

// What waits for a table: OwedRow.Kind. Rows are settled in the order of these names, so a copy
// comes before the links that it has left.
const (
	OwedTarget       = ""             // a row that shows its ledger
	OwedClaim        = "claim"        // the claim on a unique value that the row has lost
	OwedCopy         = "copy"         // a copy, which is made from its source or deleted
	OwedEntry        = "entry"        // an entry of a history
	OwedFollow       = "follow"       // followers in the table of a value
	OwedLeft         = "left"         // a row's place on a list of followers, if it has left that
	OwedMove         = "move"         // an old row that a migration may have to move
	OwedNotification = "notification" // a row for a subscriber
	OwedSet          = "set"          // a row that shows a part of a set
	OwedSource       = "source"       // the source row of a copy that another program touched
)

// OwedRow is what waits for a table.
type OwedRow struct {
	Kind     string
	Table    string
	Key      value.Item      // of the row that waits; of a list, of any follower in the table
	Position events.Position // of the newest change that asks for it, zero if that does not matter
	Rule     string          // that makes the row; of an old row, its migration; of a claim, the entity
	Source   KeyedRow        // of a copy; the old row that is to be moved
	Made     KeyedRow        // what an earlier state of the old row became, if that may have to go; the copy of a source
	Gone     bool            // the change at Position removes the copy
	Attr     string          // of a link or a claim; of what an old row became, its entity
	List     string          // of followers; of a claim, its partition key
	ShardKey string          // of the change that an entry is made from; so are Time and Record
	Time     time.Time
	Record   value.Item
	times    value.Value
	at       store.Ref
}

// ref refers to the row.
func (o *OwedRow) ref(model string, row store.Ref) store.Ref {
	switch o.Kind {
	case OwedTarget:
		return owed(model, o.Table, Hash(RowText(row)))
	case OwedFollow, OwedClaim:
		return owed(model, o.Table, o.Kind+"|"+Hash(o.List))
	case OwedLeft:
		return owed(model, o.Table, o.Kind+"|"+Hash(RowText(row)+"|"+o.Attr+"|"+o.List))
	case OwedMove, OwedSource:
		return owed(model, o.Table, o.Kind+"|"+Hash(o.Rule+"|"+o.Source.text()+"|"+o.Made.text()))
	}
	return owed(model, o.Table, o.Kind+"|"+Hash(RowText(row)))
}

// Owe names what waits, for the row that waits. It fails if a change at its Position or a later one has named
// it: then Again counts that. It may be repeated.
func (o *OwedRow) Owe(model string, row store.Ref) store.Write {
	w := store.Write{Ref: o.ref(model, row), Ops: []store.Op{set(owedTable, value.OfString(o.Table)), set(owedKey, value.OfMap(o.Key)), plus(owedTimes, 1)}}
	texts := []struct{ attr, text string }{{owedKind, o.Kind}, {owedRule, o.Rule}, {owedAttr, o.Attr}, {owedList, o.List}, {owedShard, o.ShardKey}}
	for _, t := range texts {
		if t.text != "" {
			w.Ops = append(w.Ops, set(t.attr, value.OfString(t.text)))
		}
	}
	if o.Source.Key != nil {
		w.Ops = append(w.Ops, set(owedOf, value.OfString(o.Source.Table)), set(owedOfKey, value.OfMap(o.Source.Key)))
	}
	if o.Made.Key != nil {
		w.Ops = append(w.Ops, set(owedMade, value.OfString(o.Made.Table)), set(owedMadeKey, value.OfMap(o.Made.Key)))
	}
	if o.Record != nil {
		w.Ops = append(w.Ops, set(owedRecord, value.OfMap(o.Record)), set(owedTime, value.OfInt(o.Time.UnixMicro())))
	}
	if !o.Position.IsZero() {
		gone := value.Value{}
		if o.Gone {
			gone = value.OfBool(true)
		}
		w.Ops = append(w.Ops, set(Position, o.Position.Value()), store.Assign(owedGone, gone))
		w.If, w.Return = store.Cond{store.Below(Position, o.Position.Value())}, true
	}
	return w
}

// Again counts that what a later change has named is named again. found is what Owe found. It fails if that has
// changed meanwhile.
func (o *OwedRow) Again(model string, row store.Ref, found value.Item) store.Write {
	return store.Write{Ref: o.ref(model, row), Ops: []store.Op{plus(owedTimes, 1)}, If: store.Cond{{store.AsRead(owedTimes, found.Get(owedTimes))}}}
}

// OwedCopyAt refers to what says that a copy waits, and OwedEntryAt to the same of an entry of a history.
func OwedCopyAt(model string, row store.Ref) store.Ref {
	return (&OwedRow{Kind: OwedCopy, Table: row.Table}).ref(model, row)
}

// OwedEntryAt refers to what says that an entry of a history waits.
func OwedEntryAt(model string, row store.Ref) store.Ref {
	return (&OwedRow{Kind: OwedEntry, Table: row.Table}).ref(model, row)
}

// OwedFollowAt refers to what says that followers in a table wait for the value of a list.
func OwedFollowAt(model, table, list string) store.Ref {
	return (&OwedRow{Kind: OwedFollow, Table: table, List: list}).ref(model, store.Ref{})
}

// Owed asks for what waits for a table.
func Owed(model, table string, limit int) store.Query {
	return store.Query{Table: TableName, Partition: owed(model, table, "").Key.Partition, Limit: limit}
}

// owed refers to a row of what waits for a table.
func owed(model, table, hash string) store.Ref { return Ref("owed|"+model+"|"+table, hash) }

// OwedFrom decodes the row of what waits.
func OwedFrom(row value.Item) OwedRow {
	us, _ := row.Get(owedTime).Int64()
	o := OwedRow{
		Kind: row.Get(owedKind).Text(), Table: row.Get(owedTable).Text(), Key: row.Get(owedKey).Item(),
		Position: events.PositionFrom(row.Get(Position)), Rule: row.Get(owedRule).Text(),
		Source: KeyedRow{row.Get(owedOf).Text(), row.Get(owedOfKey).Item()}, Made: KeyedRow{row.Get(owedMade).Text(), row.Get(owedMadeKey).Item()}, Gone: row.Has(owedGone), Attr: row.Get(owedAttr).Text(), List: row.Get(owedList).Text(),
		ShardKey: row.Get(owedShard).Text(), Time: time.UnixMicro(us).UTC(), Record: row.Get(owedRecord).Item(),
		times: row.Get(owedTimes), at: Ref(row.Get(Partition).Text(), row.Get(Sort).Text()),
	}
	return o
}

// Settle deletes the row, on condition that it was not named again since it was read.
func (o OwedRow) Settle() store.Write {
	return store.Write{Ref: o.at, Delete: true, If: store.Cond{{store.AsRead(owedTimes, o.times)}}}
}

// OutageJob shows what a table could not take, once it takes writes again.
type OutageJob struct {
	Table  string
	Since  time.Time
	starts value.Value
}

// OutageJobFrom decodes the row of such a job; ok is false for any other row.
func OutageJobFrom(row value.Item) (j OutageJob, ok bool) {
	since, _ := row.Get(outageSince).Int64()
	return OutageJob{row.Get(jobOutage).Text(), time.Unix(since, 0).UTC(), row.Get(outageStarts)}, row.Has(jobOutage)
}

// OutageJobAt refers to the job of a table.
func OutageJobAt(model, table string) store.Ref { return job(model, jobOutage+"|"+table) }

// BeginOutage starts the job of a table, or has it begin again. since is kept of the first start.
func BeginOutage(model, table string, since time.Time) store.Write {
	return store.Write{Ref: OutageJobAt(model, table), Ops: []store.Op{
		set(jobOutage, value.OfString(table)),
		{Kind: store.Add, Attr: outageSince, Value: value.OfInt(0), From: value.OfInt(since.Unix())}, plus(outageStarts, 1),
	}}
}

// End ends the job, on condition that it was not started again since it was read.
func (j OutageJob) End(model string) store.Write {
	return move(OutageJobAt(model, j.Table), "", store.Cond{{store.AsRead(outageStarts, j.starts)}})
}
