package measures

import (
	"log/slog"
	"strings"
)

// Event is a kind of line in the log.
type Event struct {
	Name    string // stays the same
	Level   slog.Level
	Message string // may change; with the level it tells the event
	Means   string // its meaning, and what to do
}

// events is the list, by subject.
var events = []Event{
	{"progress", slog.LevelInfo, "progress", "what a command says of its start, its work and its end, in `says`"},

	{"shard.over", slog.LevelInfo, "a shard is over", "everything of it is applied, and what was kept of it is removed"},
	{"shard.stands", slog.LevelWarn, "stands still", "a table or a shard stands still; `error` is why"},
	{"shard.goes_on", slog.LevelInfo, "goes on again", "the cause is gone"},
	{"shard.old", slog.LevelWarn, "the stream forgets records after 24 hours, and these are close to it", "see [behind the stream](#behind-the-stream)"},
	{"lease.taken", slog.LevelInfo, "reading the streams", "this process has the lease of the model; `before` had it until now"},
	{"lease.lost", slog.LevelInfo, "another process took over", "this process was paused, or could not reach DynamoDB; it stands by"},
	{"lease.renew_failed", slog.LevelWarn, "keeping the lease", "tried again; after `--lease` another process takes over"},
	{"lease.release_failed", slog.LevelWarn, "giving the lease back; it is free when it has run out", "nothing to do"},
	{"lease.list_failed", slog.LevelWarn, "looking for shards", "tried again"},

	{"traces.failed", slog.LevelWarn, "traces cannot be sent; rows are applied all the same", "start the collector, or correct the `OTEL_…` variables; spans that do not fit into the queue are dropped"},

	{"gap", slog.LevelError, "gap", "records are missing: see [after a gap](#after-a-gap)"},
	{"apply.failed", slog.LevelWarn, "applying", "a batch failed and is applied again"},
	{"apply.dead", slog.LevelWarn, "not everything could be derived", "see [dead letters](#dead-letters)"},
	{"apply.stopped_early", slog.LevelWarn, "not all that is in the streams is applied; the next start goes on", "nothing to do"},
	{"apply.again", slog.LevelWarn, "part of an event is applied, the rest comes again", "of a function; `error` is why"},
	{"apply.table_refuses", slog.LevelError, "a table refuses calls; the records that need it come again", "of a function; see [a table refuses calls](#a-table-refuses-calls)"},
	{"apply.newer_job", slog.LevelError, "a long list waits for a newer version of the function", "deploy that version"},
	{"search.pending", slog.LevelWarn, "an index does not take documents; they are pending", "a process, or the schedule of a function, writes them once the cluster answers"},
	{"tick.failed", slog.LevelError, "a scheduled invocation could not look or go on", "of a function; `error` is why, and the next minute tries again"},
	{"tick.unknown", slog.LevelWarn, "how far a stream is applied is not known", "of a function; see [nothing is read](#nothing-is-read)"},
	{"follower.killed", slog.LevelInfo, "the follower was killed, and starts again from its checkpoints", "`dev` does so when asked"},

	{"build.progress", slog.LevelInfo, "building", "how far a build is"},
	{"build.state", slog.LevelInfo, "built", "a build has reached `state`"},
	{"build.unfit", slog.LevelWarn, "rows that some derivation cannot use are left out", "put the `rows` right, or leave them out of the definition (`where`)"},
	{"build.other", slog.LevelInfo, "another builder goes on with a build", "nothing to do"},
	{"build.failed", slog.LevelError, "a build does not go on", "tried again after a minute; `error` is why"},
	{"build.unreadable", slog.LevelError, "the builds cannot be read", "tried again"},
	{"build.no_handover", slog.LevelError, "builds do not go over to positions", "tried again"},
	{"build.not_released", slog.LevelWarn, "a build is not released, so the next process waits before it goes on", "nothing to do"},
	{"search.unbuilt", slog.LevelWarn, "searches are refused until the search indexes are built", "nothing while they are built; else `projector build`"},
	{"search.unreachable", slog.LevelWarn, "searches are refused, and rows are applied: the search indexes cannot be built", "tried again; start the cluster"},
	{"search.refused", slog.LevelWarn, "the search indexes cannot be opened; rows are applied, and searches are refused until then", "start the cluster"},
	{"search.gone", slog.LevelWarn, "searches are refused, and rows are applied: a search index is gone, or was made again; it is filled again", "nothing; find out what deleted it"},
	{"search.elsewhere", slog.LevelInfo, "searches are refused until this process reads again: another one has the search index now", "nothing to do"},
	{"search.refilled", slog.LevelWarn, "the search indexes are filled again, for the row that says what is in them cannot be read", "nothing to do"},
	{"sweep.removed", slog.LevelInfo, "rows whose time to live was over are removed", "of the embedded store"},

	{"keys.back", slog.LevelInfo, "the keys can be read again", "nothing to do"},
	{"keys.expired", slog.LevelError, "the keys cannot be read, and the last ones have expired: all requests are refused until the keys can be read", "correct the file"},
	{"keys.unreadable", slog.LevelError, "the keys cannot be read again; those before stay good for a minute", "correct the file"},
	{"connections.fewer", slog.LevelWarn, "fewer connections are taken than asked for, since the process may have too few open files; raise ulimit -n", "raise it"},
	{"connections.full", slog.LevelWarn, "there are as many connections as are taken, and those that ask nothing give way", "raise `--connections`, or look who asks"},
	{"command.failed", slog.LevelWarn, "a command cannot be done now", "the client may try again"},
	{"message.failed", slog.LevelWarn, "a message is not done", "it comes again, and then goes to the queue's dead-letter queue"},
	{"console.action", slog.LevelInfo, "an action in the console", "allowed by `--console=write`"},
	{"console.retry_failed", slog.LevelWarn, "retrying dead letters broke off", "retry again"},
	{"console.recordings_failed", slog.LevelWarn, "records of a history cannot be read", "correct `--recordings`, or look at their files"},
	{"console.tail_failed", slog.LevelError, "a tail broke off", "reload the page"},

	{"store.failed", slog.LevelError, storeSays, "the disk of the embedded store refuses"},
}

// storeSays begins the messages of the embedded store's library.
const storeSays = "embedded store: "

// other is the event of a line of a library.
const other = "other"

// byLine finds events.
var byLine = func() map[string]string {
	out := map[string]string{}
	for _, e := range events {
		out[line(e.Level, e.Message)] = e.Name
	}
	return out
}()

func line(level slog.Level, message string) string { return level.String() + " " + message }

// Of returns the name of a line's event, "other" for one of a library.
func Of(level slog.Level, message string) string {
	if strings.HasPrefix(message, storeSays) {
		message = storeSays
	}
	if name, ok := byLine[line(level, message)]; ok {
		return name
	}
	return other
}
