package dynamodb

import (
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"weir/internal/store"
	"weir/internal/value"
)

var (
	noTable   = answer{400, `{"__type":"com.amazonaws.dynamodb.v20120810#ResourceNotFoundException","message":"none"}`, nil}
	inUse     = answer{400, `{"__type":"com.amazonaws.dynamodb.v20120810#ResourceInUseException","message":"there"}`, nil}
	thereNow  = answer{200, `{"Table":{"TableName":"things","TableStatus":"ACTIVE","TableId":"1"}}`, nil}
	ttlIsOff  = answer{200, `{"TimeToLiveDescription":{"TimeToLiveStatus":"DISABLED"}}`, nil}
	createdOK = answer{200, `{"TableDescription":{"TableName":"things"}}`, nil}
)

// TestDeployedByAnother: a table that another program makes between our look and our
// request is not changed. A table that we made is ours even if the answer was lost.
func TestDeployedByAnother(t *testing.T) {
	for name, c := range map[string]struct {
		answers []answer
		created bool
	}{
		"ours":             {[]answer{noTable, createdOK, thereNow, ttlIsOff, good}, true},
		"another's":        {[]answer{noTable, inUse, thereNow, ttlIsOff, good}, false},
		"the answer lost":  {[]answer{noTable, cut, inUse, thereNow, ttlIsOff, good}, true},
		"throttled before": {[]answer{noTable, throttled, inUse, thereNow, ttlIsOff, good}, false},
		"there before":     {[]answer{thereNow, thereNow, ttlIsOff, good}, false},
	} {
		t.Run(name, func(t *testing.T) {
			s, sv := fake(c.answers...)
			s.tables["things"].TTL = "x"
			d, err := s.Deploy(t.Context(), "things", false)
			if err != nil || d.Created != c.created {
				t.Errorf("%+v, %v", d, err)
			}
			touched := slices.ContainsFunc(sv.seen, func(r string) bool { return strings.HasPrefix(r, "UpdateTimeToLive ") })
			if touched != c.created {
				t.Errorf("TTL was switched on: %v", touched)
			}
			if said := slices.Contains(d.Differs, "TTL is on nothing, should be on x"); said == c.created {
				t.Errorf("said: %q", d.Differs)
			}
		})
	}
}

// TestDifferences: exactly the differences of an existing table from its definition are
// reported.
func TestDifferences(t *testing.T) {
	str := func(name string) store.KeyAttr { return store.KeyAttr{Name: name, Type: value.String} }
	want := &store.Table{
		Name: "things", Key: store.KeySchema{Partition: str("PK"), Sort: str("SK")}, Stream: true,
		Indexes: []store.Index{
			{Name: "all", Key: store.KeySchema{Partition: str("a"), Sort: store.KeyAttr{Name: "n", Type: value.Number}}},
			{Name: "keys", Key: store.KeySchema{Partition: str("b")}, KeysOnly: true},
			{Name: "near", Key: store.KeySchema{Partition: str("PK"), Sort: str("c")}, Local: true},
		},
	}
	key := func(names ...string) (out []types.KeySchemaElement) {
		for _, n := range names {
			out = append(out, types.KeySchemaElement{AttributeName: aws.String(n)})
		}
		return out
	}
	all, keys, some := types.Projection{ProjectionType: "ALL"}, types.Projection{ProjectionType: "KEYS_ONLY"}, types.Projection{ProjectionType: "INCLUDE"}
	for name, c := range map[string]struct {
		change func(*types.TableDescription)
		says   []string
	}{
		"as it should be": {func(*types.TableDescription) {}, nil},
		"more than is asked": {func(d *types.TableDescription) {
			d.GlobalSecondaryIndexes[1].Projection = &all
			d.GlobalSecondaryIndexes = append(d.GlobalSecondaryIndexes, types.GlobalSecondaryIndexDescription{IndexName: aws.String("other"), KeySchema: key("z")})
			d.BillingModeSummary = &types.BillingModeSummary{BillingMode: "PROVISIONED"}
		}, nil},
		"the key": {func(d *types.TableDescription) { d.KeySchema = key("PK") }, []string{"its key is PK (S), should be PK (S), SK (S)"}},
		"a key's type": {func(d *types.TableDescription) { d.AttributeDefinitions[3].AttributeType = "S" },
			[]string{"the key of index all is a (S), n (S), should be a (S), n (N)"}},
		"projections": {func(d *types.TableDescription) {
			d.GlobalSecondaryIndexes[0].Projection, d.LocalSecondaryIndexes[0].Projection = &some, &keys
		}, []string{"index all projects INCLUDE, should project ALL", "index near projects KEYS_ONLY, should project ALL"}},
		"an index that is being made": {func(d *types.TableDescription) { d.GlobalSecondaryIndexes[0].IndexStatus = "CREATING" },
			[]string{"index all is CREATING, and cannot be asked yet"}},
		"a global index for a local one": {func(d *types.TableDescription) {
			d.GlobalSecondaryIndexes = append(d.GlobalSecondaryIndexes, types.GlobalSecondaryIndexDescription{IndexName: aws.String("near"), KeySchema: key("PK", "c")})
			d.LocalSecondaryIndexes = nil
		}, []string{"local index near (PK (S), c (S)) is missing"}},
		"no stream": {func(d *types.TableDescription) { d.StreamSpecification = nil }, []string{"it has no stream, should have one with NEW_AND_OLD_IMAGES"}},
		"a stream without old images": {func(d *types.TableDescription) { d.StreamSpecification.StreamViewType = "NEW_IMAGE" },
			[]string{"its stream has NEW_IMAGE, should have NEW_AND_OLD_IMAGES"}},
	} {
		t.Run(name, func(t *testing.T) {
			have := &types.TableDescription{
				KeySchema:           key("PK", "SK"),
				StreamSpecification: &types.StreamSpecification{StreamEnabled: aws.Bool(true), StreamViewType: "NEW_AND_OLD_IMAGES"},
				GlobalSecondaryIndexes: []types.GlobalSecondaryIndexDescription{
					{IndexName: aws.String("all"), KeySchema: key("a", "n"), Projection: &all, IndexStatus: "ACTIVE"},
					{IndexName: aws.String("keys"), KeySchema: key("b"), Projection: &keys, IndexStatus: "ACTIVE"},
				},
				LocalSecondaryIndexes: []types.LocalSecondaryIndexDescription{{IndexName: aws.String("near"), KeySchema: key("PK", "c"), Projection: &all}},
			}
			for _, n := range []string{"PK", "SK", "a", "n", "b", "c"} {
				d := types.AttributeDefinition{AttributeName: aws.String(n), AttributeType: "S"}
				if n == "n" {
					d.AttributeType = "N"
				}
				have.AttributeDefinitions = append(have.AttributeDefinitions, d)
			}
			c.change(have)
			is, got := described(want, have), []string(nil)
			for _, d := range is.Differences() {
				got = append(got, d.Text)
			}
			if !slices.Equal(got, c.says) {
				t.Errorf("%q, want %q", got, c.says)
			}
		})
	}
}
