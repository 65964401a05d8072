package events

import (
	"strings"
	"testing"
)

func TestStamp(t *testing.T) {
	for _, c := range []struct {
		in, precision, want string
	}{
		{`1700000000`, "", "2023-11-14T22:13:20Z"},
		{`1700000000.0`, "", "2023-11-14T22:13:20Z"},
		{`1.7e9`, "", "2023-11-14T22:13:20Z"},
		{`1.7E+9`, "", "2023-11-14T22:13:20Z"},
		{`1700000000.123`, "", "2023-11-14T22:13:20.123Z"},
		{`1700000000.123456789`, "", "2023-11-14T22:13:20.123456789Z"},
		{`1700000000.1234567899`, "", "2023-11-14T22:13:20.123456789Z"},
		{`0`, "", "1970-01-01T00:00:00Z"},
		{`0.000000001`, "", "1970-01-01T00:00:00.000000001Z"},
		{`1e-20`, "", "1970-01-01T00:00:00Z"},
		{`-1.5`, "", "1969-12-31T23:59:58.5Z"},
		{`1700000000123`, "", "2023-11-14T22:13:20.123Z"},
		{`1700000000123456`, "", "2023-11-14T22:13:20.123456Z"},
		{`1700000000123`, "MILLISECOND", "2023-11-14T22:13:20.123Z"},
		{`5`, "MILLISECOND", "1970-01-01T00:00:00.005Z"},
		{`1700000000123456`, "MICROSECOND", "2023-11-14T22:13:20.123456Z"},
		{`5`, "MICROSECOND", "1970-01-01T00:00:00.000005Z"},
		{`"2023-11-14T22:13:20Z"`, "", "2023-11-14T22:13:20Z"},
		{`"2023-11-14T23:13:20.5+01:00"`, "", "2023-11-14T22:13:20.5Z"},
		{`"2023-11-14T22:13:20"`, "", "2023-11-14T22:13:20Z"},
		{`"2023-11-14 22:13:20+00:00"`, "", "2023-11-14T22:13:20Z"},
		{`"2023-11-14T22:13:20+0000"`, "", "2023-11-14T22:13:20Z"},
		{`"1700000000.5"`, "", "2023-11-14T22:13:20.5Z"},
		{`null`, "", ""},
		{`1e30`, "", "error"},
		{`1e200`, "", "error"},
		{`"14 Nov 2023"`, "", "error"},
		{`""`, "", ""},
	} {
		p := scanner{b: []byte(c.in + " ")}
		var s stamp
		p.readStamp(&s, "")
		s.precision = c.precision
		at, err := s.timeOf()
		got := timeText(at)
		if err != nil {
			got = "error"
		}
		if got != c.want {
			t.Errorf("%s %s: %s %v; want %s", c.in, c.precision, got, err, c.want)
		}
	}
}

func TestExpired(t *testing.T) {
	remove := strings.NewReplacer("INSERT", "REMOVE", "NewImage", "OldImage").Replace(streamRecord(1))
	for _, c := range []struct {
		record, identity string
		want             bool
	}{
		{remove, `{"type":"Service","principalId":"dynamodb.amazonaws.com"}`, true},
		{remove, `{"Type":"Service","PrincipalId":"dynamodb.amazonaws.com"}`, true},
		{remove, `{"PrincipalId":"dynamodb.amazonaws.com","Type":"Service"}`, true},
		{remove, `{"type":"Service","principalId":"replication.dynamodb.amazonaws.com"}`, false},
		{remove, `{"type":"User","principalId":"dynamodb.amazonaws.com"}`, false},
		{remove, `null`, false},
		{remove, `{}`, false},
		{streamRecord(1), `{"type":"Service","principalId":"dynamodb.amazonaws.com"}`, false},
	} {
		event, err := DecodeLambda([]byte(`{"userIdentity":` + c.identity + `,` + c.record[1:]))
		if err != nil || len(event.Entries) != 1 || event.Entries[0].Bad != nil || event.Entries[0].Record.Expired != c.want {
			t.Errorf("%s: %+v, %v", c.identity, event.Entries, err)
		}
	}
}
