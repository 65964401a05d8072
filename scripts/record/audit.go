package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// A wireRecord has the fields of a stream record that the audit reads.
type wireRecord struct {
	EventName string `json:"eventName"`
	DynamoDB  struct {
		Keys, NewImage, OldImage obj
	} `json:"dynamodb"`
	UserIdentity *struct{ PrincipalID string } `json:"userIdentity"`
}

// auditStreams holds every record against the change that was booked: for each row the same changes in the same
// order with the same images, and nothing besides. It keeps the changes in the order of the records, which the booked
// order of a batch or a transaction need not be.
func (a *app) auditStreams(streams []stream) error {
	booked := make(map[string][]change)
	for _, c := range a.log {
		booked[c.table+" "+c.key] = append(booked[c.table+" "+c.key], c)
	}
	total := 0
	for _, s := range streams {
		for i, raw := range s.records {
			got, err := a.changeOf(s.table, raw)
			if err != nil {
				return fmt.Errorf("record %d of %s: %w", i, s.table, err)
			}
			id := got.table + " " + got.key
			if len(booked[id]) == 0 {
				return fmt.Errorf("record %d of %s: no change of %s is booked: %s", i, s.table, got.key, raw)
			}
			want := booked[id][0]
			booked[id] = booked[id][1:]
			if !equalRows(want.old, got.old) || !equalRows(want.new, got.new) || want.swept != got.swept {
				return fmt.Errorf("record %d of %s: booked %v → %v (swept %v), recorded %s",
					i, s.table, want.old, want.new, want.swept, raw)
			}
			a.recorded = append(a.recorded, want)
			total++
		}
	}
	if total != len(a.log) {
		return fmt.Errorf("%d records where %d changes are booked", total, len(a.log))
	}
	return nil
}

func (a *app) changeOf(table string, raw json.RawMessage) (change, error) {
	var rec wireRecord
	if err := json.Unmarshal(raw, &rec); err != nil {
		return change{}, err
	}
	c := change{table: table, swept: rec.UserIdentity != nil}
	key, err := rowOf(rec.DynamoDB.Keys)
	if err != nil {
		return c, err
	}
	c.key = a.tables[table].keyOf(key)
	if c.old, err = rowOf(rec.DynamoDB.OldImage); err != nil {
		return c, err
	}
	if c.new, err = rowOf(rec.DynamoDB.NewImage); err != nil {
		return c, err
	}
	want := "MODIFY"
	if c.old == nil {
		want = "INSERT"
	} else if c.new == nil {
		want = "REMOVE"
	}
	if rec.EventName != want {
		return c, fmt.Errorf("%s with the images of %s", rec.EventName, want)
	}
	return c, nil
}

// auditTables holds every table against the booked rows.
func (a *app) auditTables() error {
	for _, spec := range a.specs {
		t := a.tables[spec.name]
		got, err := a.scanTable(spec.name)
		if err != nil {
			return err
		}
		for _, r := range got {
			if want := t.rows[t.keyOf(r)]; !equalRows(want, r) {
				return fmt.Errorf("table %s holds %v, booked is %v", spec.name, r, want)
			}
		}
		if len(got) != len(t.rows) {
			return fmt.Errorf("table %s holds %d rows, booked are %d", spec.name, len(got), len(t.rows))
		}
	}
	return nil
}

// auditAnswer holds the rows of a check against the answer of an access pattern of the document.
func (a *app) auditAnswer(by access, ordered bool, want []row) error {
	if a.offline {
		return nil
	}
	got, err := a.readAccess(by)
	if err != nil {
		return err
	}
	if !ordered {
		got, want = slices.Clone(got), slices.Clone(want)
		order := func(x, y row) int { return compareText(x, y) }
		slices.SortFunc(got, order)
		slices.SortFunc(want, order)
	}
	for i := range min(len(got), len(want)) {
		if !equalRows(got[i], want[i]) {
			return fmt.Errorf("row %d: the table answers %v, booked is %v", i, got[i], want[i])
		}
	}
	if len(got) != len(want) {
		return fmt.Errorf("the table answers %d rows, booked are %d", len(got), len(want))
	}
	return nil
}

// compareText orders rows by their printed form, which prints maps in key order.
func compareText(x, y row) int {
	return strings.Compare(fmt.Sprint(x), fmt.Sprint(y))
}
