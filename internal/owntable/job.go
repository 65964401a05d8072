package owntable

import (
	"strings"
	"time"

	"weir/internal/events"
	"weir/internal/store"
	"weir/internal/value"
)

// The rows of jobs|MODEL with s HASH are jobs: a long list is being processed in pieces.
// The consumer whose batch needs the list leaves the job after the first piece; any
// process that runs jobs does the next piece and moves the cursor, and the last piece
// deletes the job. A crash repeats at most one piece. There are as many as lists that are
// being processed, each as large as what it gives to the rows of its list.
const (
	jobCursor    = "c"         // the sort key of the last row of the list that was handled
	jobList      = "list"      // the partition of the list
	jobRecompute = "recompute" // the list of facts whose targets are recomputed
	jobStarts    = Count       // how often a recompute was started
	jobPosition  = Position
	jobRule      = "rule"
	jobSource    = "of"
	jobFields    = "f"
	jobMoment    = Count // of a notification
)

// job refers to the job with a name. Two jobs with one name are the same.
func job(model, name string) store.Ref { return Ref(Jobs(model), Hash(name)) }

// Jobs returns the partition key of a model's jobs.
func Jobs(model string) string { return "jobs|" + model }

// move moves a job's cursor, or deletes the job if next is "".
func move(at store.Ref, next string, cond store.Cond) store.Write {
	w := store.Write{Ref: at, If: cond}
	if w.Delete = next == ""; !w.Delete {
		w.Ops = []store.Op{set(jobCursor, value.OfString(next))}
	}
	return w
}

// RecomputeJob recomputes the statuses of a long list of targets.
type RecomputeJob struct {
	List   string // of facts, see package status
	Cursor string // the name of the last target that was recomputed
	starts value.Value
}

// RecomputeJobFrom decodes the row of such a job; ok is false for any other row.
func RecomputeJobFrom(row value.Item) (j RecomputeJob, ok bool) {
	return RecomputeJob{row.Get(jobRecompute).Text(), row.Get(jobCursor).Text(), row.Get(jobStarts)}, row.Has(jobRecompute)
}

// recomputeJob is the row of a job that computes the statuses of a list again.
func recomputeJob(model, list string) store.Ref { return job(model, jobRecompute+"|"+list) }

// BeginRecompute starts a job for the targets of a list after a name. If the list has such
// a job already, that job begins again after the name.
func BeginRecompute(model, list, after string, now time.Time) store.Write {
	return store.Write{Ref: recomputeJob(model, list), Ops: []store.Op{
		set(jobRecompute, value.OfString(list)), set(jobCursor, value.OfString(after)),
		{Kind: store.Add, Attr: jobStarts, Value: value.OfInt(1), From: value.OfInt(now.UnixMicro())},
	}}
}

// Move moves the job on to a name, or ends it with "", on condition that it was not started
// again since it was read.
func (j RecomputeJob) Move(model, to string) store.Write {
	return move(recomputeJob(model, j.List), to, store.Cond{{{Attr: jobStarts, Is: store.Eq, Value: j.starts}}})
}

// FollowJob gives a followed value to a long list of followers.
type FollowJob struct {
	List   string // the partition of the value and its followers
	Cursor string // the sort key of the last follower that has the value
	of     value.Value
}

// FollowJobFrom decodes the row of such a job of a model; ok is false for any other row.
func FollowJobFrom(model string, row value.Item) (j FollowJob, ok bool) {
	j = FollowJob{row.Get(jobList).Text(), row.Get(jobCursor).Text(), row.Get(jobPosition)}
	return j, strings.HasPrefix(j.List, FollowedIn(model))
}

// BeginFollow starts a job for the followers on a list after a sort key, which gives them
// the value of a position. It replaces a job for an older value of the list, and fails if
// there is one for the same or a newer value.
func BeginFollow(model, list, after string, p events.Position) store.Write {
	return store.Write{
		Ref: job(model, list), If: store.Cond{store.Below(jobPosition, p.Value())},
		Ops: []store.Op{set(jobList, value.OfString(list)), set(jobCursor, value.OfString(after)), set(jobPosition, p.Value())},
	}
}

// Move moves the job on to a sort key, or ends it with "", on condition that no newer value
// has replaced it since it was read.
func (j FollowJob) Move(model, to string) store.Write {
	return move(job(model, j.List), to, store.Cond{{{Attr: jobPosition, Is: store.Eq, Value: j.of}}})
}

// NotifyJob writes a notification to a long list of subscribers.
type NotifyJob struct {
	Rule, Source string     // names of the rule and of the entity that it is of
	Fields       value.Item // what the rows made take from the change
	List         string     // the partition of the list
	Cursor       string     // the sort key of the last subscriber that was notified
	Position     events.Position
	Moment       int64
	cursor       value.Value
}

// NotifyJobFrom decodes the row of such a job; ok is false for any other row.
func NotifyJobFrom(row value.Item) (j NotifyJob, ok bool) {
	j = NotifyJob{
		Rule: row.Get(jobRule).Text(), Source: row.Get(jobSource).Text(), Fields: row.Get(jobFields).Item(), List: row.Get(jobList).Text(),
		Cursor: row.Get(jobCursor).Text(), Position: events.PositionFrom(row.Get(jobPosition)), cursor: row.Get(jobCursor),
	}
	j.Moment, _ = row.Get(jobMoment).Int64()
	return j, row.Has(jobRule)
}

// at is the row of the job: one for each list and record, so a job that is started again is the
// same one.
func (j NotifyJob) at(model string) store.Ref {
	return job(model, "notify|"+j.List+"|"+j.Position.String())
}

// Begin starts the job, unless it exists. The store refuses it if the notification is too
// large for a row.
func (j NotifyJob) Begin(model string) store.Write {
	return store.Write{
		Ref: j.at(model), If: NotThere(),
		Ops: []store.Op{
			set(jobRule, value.OfString(j.Rule)), set(jobSource, value.OfString(j.Source)), set(jobFields, value.OfMap(j.Fields)),
			set(jobList, value.OfString(j.List)), set(jobCursor, value.OfString(j.Cursor)),
			set(jobPosition, j.Position.Value()), set(jobMoment, value.OfInt(j.Moment)),
		},
	}
}

// Move moves the job on to a sort key, or ends it with "", on condition that its cursor has
// not changed since it was read.
func (j NotifyJob) Move(model, to string) store.Write {
	return move(j.at(model), to, store.Cond{{{Attr: jobCursor, Is: store.Eq, Value: j.cursor}}})
}
