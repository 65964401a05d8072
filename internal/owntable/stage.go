package owntable

import (
	"time"

	"weir/internal/store"
	"weir/internal/value"
)

// The rows of stage|TABLE say which stage a real table belongs to. They stand in the own
// table of the default stage, whichever stage they name, so that the programs of all
// stages find them. The first program of a stage that may write the table creates the row,
// on condition that no other stage has it. Each start renews it, if need be; an operator
// may delete it. It expires a year after the last renewal, so the rows grow with the
// tables in use. It has about 100 bytes.
const (
	stageName   = "n"
	stageExpiry = Expiry
)

const (
	stageKept    = 365 * 24 * time.Hour
	stageRenewed = stageKept - 30*24*time.Hour
)

// StageOf refers to the row that says which stage a real table belongs to.
func StageOf(table string) store.Ref { return Ref("stage|"+table, "") }

const stageDo = "delete the row, and start a program of the stage that the table belongs to"

// DecodeStage decodes the stage that a table belongs to, "" for none. The error wraps
// ErrRow. fresh reports that the row need not be renewed now.
func DecodeStage(row value.Item, now time.Time) (stage string, fresh bool, err error) {
	if row == nil {
		return "", false, nil
	}
	until, err := whole(row, stageExpiry, 0, stageDo)
	if err == nil {
		stage, err = text(row, stageName, stageDo)
	}
	if err == nil && stage == "" {
		err = unreadable(row, stageName, "the name of a stage", stageDo)
	}
	return stage, until-now.Unix() > int64(stageRenewed/time.Second), err
}

// SetStage says that a table belongs to a stage, on condition that it belongs to no other
// one. The write returns the row.
func SetStage(at store.Ref, stage string, now time.Time) store.Write {
	own, is := Table(), value.OfString(stage)
	return store.Write{
		Ref: at, Return: true, If: store.Cond{{{Attr: Partition, Is: store.Absent}, {Attr: stageName, Is: store.Eq, Value: is}}},
		Put: own.Item(at.Key).With(value.Attr{Name: stageName, Value: is}).With(value.Attr{Name: stageExpiry, Value: value.OfInt(now.Add(stageKept).Unix())}),
	}
}
