package projectorcli

import (
	"maps"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"weir/internal/failtest"
	"weir/internal/lambda/lambdatest"
	"weir/internal/owntable"
)

// What is here takes away what weir has counted, or what it was to count, between two starts or
// under a program that runs.

// builtAndReplaced has a table dropped after it was built and before its stream was read.
func (l *life) builtAndReplaced() {
	m := l.model(lifeModel + lifeCount)
	l.deploys(m)
	l.write(6)
	l.ends(exitGood, []string{"build", m, "--again"}, "Customer: live")
	rows := l.rows()
	l.drop()
	l.create(types.StreamViewTypeNewAndOldImages)
	l.restore(rows[:3])
	l.refused(m, "table Shop is another one", "--stage")
	l.ends(exitUsage, []string{"run", m, "--addr", "127.0.0.1:0"}, "table Shop is another one")
	l.ends(exitUsage, []string{"build", m, "--again"}, "table Shop is another one")
}

// builtAndSwitched loses what was written after a build, with the stream that had it.
func (l *life) builtAndSwitched() {
	m := l.model(lifeModel + lifeCount)
	l.create("")
	t := *l
	t.flags = []string{"--aws"}
	t.ends(exitCheck, []string{"deploy", "tables", m})
	l.write(6)
	l.stream(types.StreamViewTypeNewAndOldImages)
	l.ends(exitGood, []string{"build", m}, "Customer: live")
	l.write(3)
	l.stream(types.StreamViewTypeNewAndOldImages)
	l.write(2)
	for range 2 { // it is kept that it is so
		l.refused(m, "Customer.orders is new, or not counted since", "switched off and on before it was read", "projector build "+m)
	}
	l.runs(m, map[string]int{"orders": len(l.orders)})
	l.write(2)
	l.runs(m, map[string]int{"orders": len(l.orders)}, "--build=never")
	l.exact(m)
}

// own are the rows of weir's own table.
func (l *life) own() (items []map[string]types.AttributeValue) {
	l.Helper()
	pages := sdk.NewScanPaginator(l.db, &sdk.ScanInput{TableName: aws.String(owntable.TableName), ConsistentRead: aws.Bool(true)})
	for pages.HasMorePages() {
		page, err := pages.NextPage(l.Context())
		failtest.On(l, err)
		items = append(items, page.Items...)
	}
	return items
}

// restoreOwn makes weir's own table again, with rows of a backup.
func (l *life) restoreOwn(m string, rows []map[string]types.AttributeValue) {
	l.Helper()
	if _, err := l.db.DeleteTable(l.Context(), &sdk.DeleteTableInput{TableName: aws.String(owntable.TableName)}); err != nil {
		l.Fatal(err)
	}
	time.Sleep(20 * time.Millisecond)
	l.deploys(m)
	for _, row := range rows {
		if _, err := l.db.PutItem(l.Context(), &sdk.PutItemInput{TableName: aws.String(owntable.TableName), Item: row}); err != nil {
			l.Fatal(err)
		}
	}
}

// ownRestored has ledgers of a backup beside rows that show later versions. It would show nothing
// new until it has counted as many batches as it had.
func (l *life) ownRestored() {
	m := l.begun()
	l.runs(m, map[string]int{"orders": 6})
	backup := l.own()
	for range 3 {
		l.write(2)
		l.runs(m, map[string]int{"orders": len(l.orders)})
	}
	l.restoreOwn(m, backup)
	l.write(2)
	for range 2 {
		l.refused(m, "because that table was restored", "projector build "+m)
	}
	l.runs(m, map[string]int{"orders": len(l.orders)})
	l.write(2)
	l.runs(m, map[string]int{"orders": len(l.orders)}, "--build=never")
	l.exact(m)
}

// ownDeleted has a process find its own table gone, and then empty.
func (l *life) ownDeleted() {
	m := l.begun()
	l.ends(exitGood, []string{"build", m, "--again"}, "Customer: live")
	until, stop := l.begins(m)
	until(map[string]int{"orders": len(l.orders)})
	l.restoreOwn(m, nil)
	l.write(3)
	until(map[string]int{"orders": len(l.orders)})
	l.Log(stop())
	l.exact(m)
}

// warm has a function, which was started before, get records of another stream and of another table.
func (l *life) warm() {
	m := l.bare()
	l.write(6)
	f := lambdatest.New(l.T, "projector", append([]string{"WEIR_MODEL=" + m}, l.env...)...)
	f.Start()
	defer f.Kill()
	known := places{}
	invoke := func(want string) {
		l.Helper()
		payloads, last := l.events(known)
		for shard, event := range payloads {
			if _, old := known[shard]; old {
				continue
			}
			a := f.Invoke(labelled(event, l.label()), time.Minute)
			if is := a.Kind + " " + a.Body; !strings.HasPrefix(is, "response") && want == "" || !strings.Contains(is, want) {
				l.Errorf("%s, want %q", is, want)
			}
		}
		maps.Copy(known, last)
	}
	invoke("")
	l.stream(types.StreamViewTypeNewAndOldImages)
	l.write(3)
	invoke("")
	l.ends(exitGood, []string{"dead", "list", m}, "was switched off and on again")
	rows := l.rows()
	l.drop()
	l.create(types.StreamViewTypeNewAndOldImages)
	l.restore(rows)
	invoke("table Shop is another one")
}

// labelled is an event of the stream with a label.
func labelled(event []byte, label string) []byte {
	return []byte(strings.ReplaceAll(string(event), "/stream/2026", "/stream/"+label))
}

// anew switches the stream off and on, and makes weir's own table again as docs/guide/operations.md says. A function still
// gets events of the first stream.
func (l *life) anew() {
	m := l.bare()
	l.write(6)
	known := places{}
	gives := func(label, want string) {
		l.Helper()
		payloads, last := l.events(known)
		for shard := range payloads {
			payloads[shard] = labelled(payloads[shard], label)
		}
		for shard, said := range l.invoke(m, payloads) {
			if want == "" && (!strings.HasPrefix(said, "response") || strings.Contains(said, "itemIdentifier")) || !strings.Contains(said, want) {
				l.Errorf("%s of the stream %s: %s", shard, label, said)
			}
		}
		if len(payloads) == 0 {
			l.Errorf("no events of the stream %s", label)
		}
		maps.Copy(known, last)
	}
	first := l.label()
	gives(first, "")
	l.write(4) // the function has not had them
	l.stream(types.StreamViewTypeNewAndOldImages)
	l.restoreOwn(m, nil)
	l.ends(exitGood, []string{"build", m, "--again"}, "Customer: live")
	gives(first, "of an earlier stream of table Shop ("+first+")")
	l.exact(m)
	l.write(5)
	gives(l.label(), "")
	l.exact(m)
}

// label is the label of the stream of the table Shop.
func (l *life) label() string {
	l.Helper()
	out, err := l.db.DescribeTable(l.Context(), &sdk.DescribeTableInput{TableName: aws.String("Shop")})
	failtest.On(l, err)
	return aws.ToString(out.Table.LatestStreamLabel)
}

// thereAgain has rows show what a build made that is gone.
func (l *life) thereAgain() {
	text, _, _ := strings.Cut(lifeModel, "derive:")
	m, none := l.model(lifeModel+lifeCount), l.model(text)
	l.deploys(m)
	l.write(6)
	l.ends(exitGood, []string{"build", m, "--again"}, "Customer: live")
	l.ends(exitGood, []string{"build", none})
	l.ends(exitGood, []string{"status", none})
	l.write(3)
	l.refused(m, "Customer.orders is retired since", "projector build "+m)
	l.runs(m, map[string]int{"orders": len(l.orders)})
	l.write(3)
	l.runs(m, map[string]int{"orders": len(l.orders)}, "--build=never")
	l.exact(m)
}
