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
// The row of a table in its stage's own table names the model that derives from it, too; in the stage default that is one row.
const (
	stageName   = "n"
	stageModel  = "m"
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
	if row.Get(stageName).IsMissing() { // it only names the model
		return "", false, nil
	}
	until, err := decodeInt(row, stageExpiry, 0, stageDo)
	if err == nil {
		stage, err = decodeText(row, stageName, stageDo)
	}
	if err == nil && stage == "" {
		err = unreadableError(row, stageName, "the name of a stage", stageDo)
	}
	return stage, until-now.Unix() > int64(stageRenewed/time.Second), err
}

// SetStage says that a table belongs to a stage, on condition that it belongs to no other
// one. The write returns the row.
func SetStage(at store.Ref, stage string, now time.Time) store.Write {
	is := value.OfString(stage)
	return store.Write{
		Ref: at, Return: true, If: store.Cond{{{Attr: stageName, Is: store.Absent}, {Attr: stageName, Is: store.Eq, Value: is}}},
		Ops: []store.Op{store.Assign(stageName, is), store.Assign(stageExpiry, value.OfInt(now.Add(stageKept).Unix()))},
	}
}

// DecodeModel decodes the model that a table belongs to in the stage of the own table, "" for none. The error wraps ErrRow.
func DecodeModel(row value.Item) (model string, err error) {
	return decodeText(row, stageModel, stageDo)
}

// SetModel says that a table belongs to a model, on condition that it belongs to the one that it belonged to, "" for none.
func SetModel(at store.Ref, was, model string) store.Write {
	return store.Write{Ref: at, If: ifModel(was), Ops: []store.Op{store.Assign(stageModel, value.OfString(model))}}
}

// LeaveModel says that a table belongs to no model, on condition that it belongs to this one.
func LeaveModel(at store.Ref, model string) store.Write {
	return store.Write{Ref: at, If: ifModel(model), Ops: []store.Op{{Kind: store.Remove, Attr: stageModel}}}
}

func ifModel(model string) store.Cond {
	if model == "" {
		return store.Cond{{store.AsRead(stageModel, value.Value{})}}
	}
	return store.Cond{{store.AsRead(stageModel, value.OfString(model))}}
}
