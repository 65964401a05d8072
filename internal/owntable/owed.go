package owntable

import (
	"time"

	"weir/internal/store"
	"weir/internal/value"
)

// The rows of owed|MODEL|TABLE with s HASH name targets in a table that takes no writes: each must be
// shown again once it does. HASH is that of the target. The consumer that cannot show a target leaves
// the row, and then the job of the table; the job shows the target and deletes the row. A target that
// is named again meanwhile is shown again, as its row counts how often it was. There are as many rows
// as targets that wait, of about 150 bytes.
const (
	owedTable    = "t"
	owedKey      = "key"
	owedTimes    = Count
	jobOutage    = "outage" // the table
	outageSince  = "since"
	outageStarts = Count // how often the job was started
)

// OwedRow is a target that must be shown again.
type OwedRow struct {
	Table string
	Key   value.Item
	times value.Value
	at    store.Ref
}

// Owe names a target, whose key attributes are key. It may be repeated.
func Owe(model string, target store.Ref, key value.Item) store.Write {
	return store.Write{Ref: owed(model, target.Table, Hash(RowText(target))), Ops: []store.Op{
		set(owedTable, value.OfString(target.Table)), set(owedKey, value.OfMap(key)), plus(owedTimes, 1),
	}}
}

// Owed asks for targets of a table that wait.
func Owed(model, table string, limit int) store.Query {
	return store.Query{Table: TableName, Partition: owed(model, table, "").Key.Partition, Limit: limit}
}

// owed refers to the row of a target.
func owed(model, table, hash string) store.Ref { return Ref("owed|"+model+"|"+table, hash) }

// OwedFrom decodes the row of a target.
func OwedFrom(row value.Item) OwedRow {
	return OwedRow{row.Get(owedTable).Text(), row.Get(owedKey).Item(), row.Get(owedTimes), Ref(row.Get(Partition).Text(), row.Get(Sort).Text())}
}

// Settle deletes the row, on condition that the target was not named again since it was read.
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
