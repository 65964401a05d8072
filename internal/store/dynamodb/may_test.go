package dynamodb

import (
	"strings"
	"testing"
	"time"

	"weir/internal/doctor"
)

var (
	denied   = answer{400, `{"__type":"com.amazon.coral.service#AccessDeniedException","message":"not authorized"}`, nil}
	unmetAll = answer{400, `{"__type":"com.amazonaws.dynamodb.v20120810#TransactionCanceledException","message":"no","CancellationReasons":[{"Code":"ConditionalCheckFailed"}]}`, nil}
	noStream = answer{400, `{"__type":"com.amazonaws.dynamodb.v20120810#UnknownOperationException","message":"no"}`, nil}
	streamed = answer{200, `{"Table":{"TableName":"things","TableStatus":"ACTIVE","LatestStreamArn":"arn:s"}}`, nil}
)

// TestMay: a permission is known only by an answer to the very action, and what was not answered is not called allowed.
func TestMay(t *testing.T) {
	for name, c := range map[string]struct {
		action  string
		answers []answer
		allowed bool
		unknown string // a part of what is needed
	}{
		"a condition that is not met":     {"PutItem", []answer{notHeld}, true, ""},
		"a transaction that is cancelled": {"ConditionCheckItem", []answer{unmetAll}, true, ""},
		"denied":                          {"UpdateItem", []answer{denied}, false, ""},
		"throttled, then allowed":         {"Query", []answer{throttled, good}, true, ""},
		"no answer":                       {"DeleteItem", []answer{unreached}, false, "an endpoint that answers"},
		"another refusal":                 {"BatchGetItem", []answer{refused}, false, "ValidationException"},
		"an endpoint without it":          {"DescribeTable", []answer{noStream}, false, "AWS itself"},
		"an unknown action":               {"Fly", []answer{good}, false, "another way to ask"},
		"what it needs is denied":         {"GetRecords", []answer{denied}, false, "the permission dynamodb:DescribeTable"},
		"what it needs next is denied":    {"GetRecords", []answer{streamed, denied}, false, "the permission dynamodb:DescribeStream"},
		"the action itself is denied":     {"DescribeStream", []answer{streamed, denied}, false, ""},
		"a table without a stream":        {"GetShardIterator", []answer{thereNow}, false, "a stream of the table"},
	} {
		t.Run(name, func(t *testing.T) {
			s, _ := patient(50*time.Millisecond, c.answers...)
			got := s.May(t.Context(), "dynamodb:"+c.action, "things", "")
			if got.Is != c.allowed || (got.Unknown == "") != (c.unknown == "") || !strings.Contains(got.Unknown, c.unknown) {
				t.Errorf("%+v", got)
			}
		})
	}
}

// TestLook: what DynamoDB does not answer is said, each by itself.
func TestLook(t *testing.T) {
	for name, c := range map[string]struct {
		answers []answer
		is      doctor.Table
	}{
		"no table":        {[]answer{noTable}, doctor.Table{Missing: true}},
		"table denied":    {[]answer{denied}, doctor.Table{Unknown: "the permission dynamodb:DescribeTable"}},
		"the rest denied": {[]answer{thereNow, denied}, doctor.Table{Status: "ACTIVE", TTL: doctor.Not[string]("the permission dynamodb:DescribeTimeToLive"), PITR: doctor.Not[bool]("the permission dynamodb:DescribeContinuousBackups")}},
		"PITR": {[]answer{thereNow, ttlIsOff, {200, `{"ContinuousBackupsDescription":{"ContinuousBackupsStatus":"ENABLED","PointInTimeRecoveryDescription":{"PointInTimeRecoveryStatus":"ENABLED"}}}`, nil}},
			doctor.Table{Status: "ACTIVE", PITR: doctor.Known(true)}},
	} {
		t.Run(name, func(t *testing.T) {
			s, _ := patient(50*time.Millisecond, c.answers...)
			got, err := s.Look(t.Context(), "things")
			if err != nil || got.Missing != c.is.Missing || got.Unknown != c.is.Unknown || got.Status != c.is.Status || got.TTL != c.is.TTL || got.PITR != c.is.PITR {
				t.Errorf("%+v, %v", got, err)
			}
		})
	}
}
