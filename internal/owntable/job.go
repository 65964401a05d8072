package owntable

import (
	"time"

	"weir/internal/events"
	"weir/internal/store"
	"weir/internal/value"
)

// Job is the rest of a long list that is being served in pages: jobs|MODEL, s HASH. The worker whose batch needs the list
// leaves the job after the first page; any process that runs jobs serves the next page and moves the cursor, and the last
// page deletes the job. A crash repeats at most one page. There are as many as lists that are being served, each as
// large as the values that it gives to the rows of its list. For example,
//
//	k jobs|films  s 8Jk…  list follow|films|Movie.title|films|MOVIE#1  c mQ2…  p 000…12  n 1700…1
type Job struct {
	List     string          `row:"list"` // the partition of the list
	Cursor   string          `row:"c"`    // the sort key of the last row that was served
	Position events.Position `row:"p"`    // of the change that asks for it, if only one
	Moves    int64           `row:"n"`    // changes with each write of the row

	// Of a notification: names of the rule and of its entity, the values that the rows made take from the change,
	// and its moment. A list has a job for each.
	Rule   string     `row:"rule"`
	Source string     `row:"of"`
	Fields value.Item `row:"f"`
	Moment int64      `row:"m"`
}

const (
	jobList   = "list"
	jobCursor = "c"
	jobMoves  = Count
	jobDo     = "delete it, and run projector build MODEL --again"
)

// EntriesJob is a job of the followers or the subscribers of a list.
func EntriesJob(list store.Ref) Job {
	return Job{List: list.Key.Partition.Text(), Cursor: entriesBegin}
}

// TargetsJob is a job of the targets of a list of facts.
func TargetsJob(model, list string) Job { return Job{List: Facts(model) + list, Cursor: targetsBegin} }

// Jobs returns the partition key of a model's jobs.
func Jobs(model string) string { return "jobs|" + model }

// DecodeJob decodes the row of a job. The error wraps ErrRow.
func DecodeJob(row value.Item) (j Job, err error) {
	err = readTagged(row, &j, jobDo)
	return j, err
}

// Page returns the query for the rows of the list that come next.
func (j *Job) Page(limit int) store.Query {
	return store.Query{
		Table: TableName, Partition: value.OfString(j.List), Sort: store.Range{From: value.OfString(j.Cursor + "\x00")}, Limit: limit,
	}
}

// rowRef is the row of the job: of one list, or of one list and notification.
func (j *Job) rowRef(model string) store.Ref {
	name := j.List
	if j.Rule != "" {
		name += "|" + j.Position.String()
	}
	return Ref(Jobs(model), Hash(name))
}

// Begin starts the job. A job of the list that has another cursor begins again there, unless it is for the same change or
// a newer one. The store refuses it if a notification is too large for a row.
func (j *Job) Begin(model string, now time.Time) store.Write {
	w := store.Write{Ref: j.rowRef(model)}
	if !j.Position.IsZero() {
		w.If = store.Cond{store.Below(Position, j.Position.Value())}
	}
	for _, a := range writeTagged(*j) {
		op := store.Assign(a.Name, a.Value)
		if a.Name == jobMoves {
			op = store.Op{Kind: store.Add, Attr: jobMoves, Value: value.OfInt(1), From: value.OfInt(now.UnixMicro())}
		}
		w.Ops = append(w.Ops, op)
	}
	return w
}

// Move moves the job on to a sort key, or ends it with "", on condition that nothing has moved it or begun it again since
// it was read.
func (j *Job) Move(model, to string) store.Write {
	w := store.Write{Ref: j.rowRef(model), Delete: to == "", If: store.Cond{equalTest(jobMoves, j.Moves)}}
	if !w.Delete {
		w.Ops = []store.Op{setAttr(jobCursor, value.OfString(to)), addTo(jobMoves, 1)}
	}
	return w
}
