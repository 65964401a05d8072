package dynamodb

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/arn"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"weir/internal/doctor"
	"weir/internal/parallel"
	"weir/internal/seq"
	"weir/internal/store"
)

var _ store.Deployer = (*Store)(nil)

// Deploy makes a table of the store if it does not exist, with its indexes, stream and
// TTL, and waits until it is active. An existing table is compared and left as it is,
// with one exception: if own says that it is our own table, Deploy switches its TTL on,
// because a crash may have come between making the table and switching the TTL on.
// Several programs may deploy one table at the same time: one makes it, the others wait for it.
func (s *Store) Deploy(ctx context.Context, name string, own bool) (d store.Deployed, err error) {
	if err := s.beginCall(ctx); err != nil {
		return d, err
	}
	t, err := s.table(name)
	if err == nil {
		d, err = s.deploy(ctx, t, own)
	}
	return d, store.Wrap(err, "deploying table %s", name)
}

// deploy is Deploy for one table. A crash may leave the table without its TTL; a call
// with own switches it on.
func (s *Store) deploy(ctx context.Context, t *store.Table, own bool) (store.Deployed, error) {
	d := store.Deployed{Table: t.Name}
	found, err := s.tableThere(ctx, t.Name)
	if err != nil {
		return d, err
	}
	if found == nil {
		if d.Created, err = s.createTable(ctx, t); err != nil {
			return d, err
		}
	}
	if found, err = s.awaitActive(ctx, t.Name); err != nil {
		return d, err
	}
	d.ID = identity(found)
	ttl, err := s.ttl(ctx, t.Name)
	if err != nil {
		return d, err
	}
	if ttl == "" && t.TTL != "" && (own || d.Created) {
		return d, s.enableTTL(ctx, t)
	}
	is := described(t, found)
	is.TTL = doctor.Known(ttl)
	d.Differs = append(d.Differs, seq.Map(is.Differences(), func(x doctor.Difference) string { return x.Text })...)
	return d, nil
}

// Identity identifies a table and its stream by DynamoDB's description of them. Whole is
// false: DynamoDB does not say whether a stream was switched on together with its table,
// and rows may have been written before.
func (s *Store) Identity(ctx context.Context, name string) (store.Identity, error) {
	if err := s.beginCall(ctx); err != nil {
		return store.Identity{}, fmt.Errorf("identity: %w", err)
	}
	t, err := s.table(name)
	if err != nil {
		return store.Identity{}, fmt.Errorf("identity: %w", err)
	}
	found, err := s.tableThere(ctx, t.Name)
	if err != nil || found == nil {
		return store.Identity{}, err
	}
	id := store.Identity{ID: identity(found), ARN: aws.ToString(found.TableArn), Made: aws.ToTime(found.CreationDateTime).UTC(), Rows: aws.ToInt64(found.ItemCount), Bytes: aws.ToInt64(found.TableSizeBytes)}
	id.Region, id.Replicas = replicas(found)
	id.Strong = isStrong(found)
	if on := found.StreamSpecification; on != nil && aws.ToBool(on.StreamEnabled) {
		id.Stream, id.Images = aws.ToString(found.LatestStreamLabel), store.Images(on.StreamViewType)
		id.Together = madeTogether(found)
	}
	return id, nil
}

// replicas returns the region of a table, and the other regions of a global table of either
// version. The older version does not list them here.
func replicas(t *types.TableDescription) (region, others string) {
	if at, err := arn.Parse(aws.ToString(t.TableArn)); err == nil {
		region = at.Region
	}
	var all []string
	for _, r := range t.Replicas {
		if name := aws.ToString(r.RegionName); name != "" && name != region {
			all = append(all, name)
		}
	}
	if len(all) == 0 && aws.ToString(t.GlobalTableVersion) != "" {
		return region, "other regions"
	}
	slices.Sort(all)
	return region, strings.Join(all, ",")
}

// isStrong reports whether a table is a global table whose regions agree before they answer.
func isStrong(t *types.TableDescription) bool {
	return t.MultiRegionConsistency == types.MultiRegionConsistencyStrong
}

// madeTogether reports whether one CreateTable call made a table and its stream. Both then
// have the same time, to the millisecond (AWS CLI reference, create-table, the examples with
// streams; DynamoDB Local does the same). A stream that was switched on later has a later
// time: the table must be ACTIVE first. A replica of a global table and a restored table may
// have rows that their streams never had.
func madeTogether(t *types.TableDescription) bool {
	label, err := time.Parse("2006-01-02T15:04:05.000", aws.ToString(t.LatestStreamLabel))
	made := aws.ToTime(t.CreationDateTime).UTC().Round(time.Millisecond)
	return err == nil && label.Equal(made) && len(t.Replicas) == 0 && t.GlobalTableVersion == nil && t.RestoreSummary == nil
}

// identity tells a table from another that had or gets its name. DynamoDB Local has no
// table ids, so there the creation time is used.
func identity(t *types.TableDescription) string {
	if id := aws.ToString(t.TableId); id != "" {
		return id
	}
	return "made at " + aws.ToTime(t.CreationDateTime).UTC().Format(time.RFC3339Nano)
}

// tableThere describes a table; it returns nil if the table does not exist.
// The description is eventually consistent (DescribeTable): a table that was made a moment ago may
// not be there yet.
func (s *Store) tableThere(ctx context.Context, name string) (*types.TableDescription, error) {
	out, err := asked(ctx, s, soon, s.db.DescribeTable, &dynamodb.DescribeTableInput{TableName: &name})
	var missing *types.ResourceNotFoundException
	switch {
	case errors.As(err, &missing):
		return nil, nil
	case err != nil:
		return nil, err
	}
	return out.Table, nil
}

// createTable makes the table. It is no error if another program makes a table with this
// name at the same time; ours is then false, and the table must not be changed.
func (s *Store) createTable(ctx context.Context, t *store.Table) (ours bool, err error) {
	in := &dynamodb.CreateTableInput{
		TableName: &t.Name, BillingMode: types.BillingModePayPerRequest,
		AttributeDefinitions: definitions(t), KeySchema: keySchema(t.Key),
	}
	if t.Stream {
		in.StreamSpecification = &types.StreamSpecification{StreamEnabled: aws.Bool(true), StreamViewType: types.StreamViewTypeNewAndOldImages}
	}
	for i := range t.Indexes {
		ix := &t.Indexes[i]
		if ix.Local {
			in.LocalSecondaryIndexes = append(in.LocalSecondaryIndexes, types.LocalSecondaryIndex{
				IndexName: &ix.Name, KeySchema: keySchema(ix.Key), Projection: projection(ix)})
			continue
		}
		in.GlobalSecondaryIndexes = append(in.GlobalSecondaryIndexes, types.GlobalSecondaryIndex{
			IndexName: &ix.Name, KeySchema: keySchema(ix.Key), Projection: projection(ix)})
	}
	lost := false
	err = s.sendUntilDone(ctx, later, func(ctx context.Context) error {
		_, err := s.db.CreateTable(ctx, in)
		lost = lost || err != nil && judge(err) == unknown
		return err
	})
	if inUse := (*types.ResourceInUseException)(nil); errors.As(err, &inUse) {
		return lost, nil // if the answer to a first try was lost, the table is ours
	}
	return err == nil, err
}

// awaitActive waits until the table and its indexes can be used.
// It waits as long as ctx allows. A table that is being deleted is an error.
func (s *Store) awaitActive(ctx context.Context, name string) (*types.TableDescription, error) {
	for wait := 20 * time.Millisecond; ; wait = min(2*wait, 2*time.Second) {
		found, err := s.tableThere(ctx, name)
		if err != nil {
			return nil, err
		}
		if found != nil && found.TableStatus == types.TableStatusActive {
			return found, nil
		}
		if found != nil && found.TableStatus != types.TableStatusCreating && found.TableStatus != types.TableStatusUpdating {
			return nil, fmt.Errorf("it is %s", found.TableStatus)
		}
		if err := parallel.Sleep(ctx, wait); err != nil {
			return nil, err
		}
	}
}

// ttl is the attribute with the table's expiry, "" if TTL is off.
// A TTL that is being switched on counts as on.
func (s *Store) ttl(ctx context.Context, name string) (string, error) {
	out, err := asked(ctx, s, soon, s.db.DescribeTimeToLive, &dynamodb.DescribeTimeToLiveInput{TableName: &name})
	if err != nil {
		return "", err
	}
	d := out.TimeToLiveDescription
	if d != nil && (d.TimeToLiveStatus == types.TimeToLiveStatusEnabled || d.TimeToLiveStatus == types.TimeToLiveStatusEnabling) {
		return aws.ToString(d.AttributeName), nil
	}
	return "", nil
}

// enableTTL switches TTL on. It returns as soon as DynamoDB has accepted the change.
func (s *Store) enableTTL(ctx context.Context, t *store.Table) error {
	_, err := asked(ctx, s, later, s.db.UpdateTimeToLive, &dynamodb.UpdateTimeToLiveInput{TableName: &t.Name,
		TimeToLiveSpecification: &types.TimeToLiveSpecification{AttributeName: &t.TTL, Enabled: aws.Bool(true)}})
	return err
}

// definitions names the type of each attribute that is part of a key.
// It has no other attributes, because CreateTable refuses those that no key uses. The order is that
// of the names, so the same table gives the same request.
func definitions(t *store.Table) (out []types.AttributeDefinition) {
	for _, k := range t.KeyAttrs() {
		out = append(out, types.AttributeDefinition{AttributeName: aws.String(k.Name), AttributeType: types.ScalarAttributeType(k.Type.Descriptor())})
	}
	slices.SortFunc(out, func(a, b types.AttributeDefinition) int { return strings.Compare(*a.AttributeName, *b.AttributeName) })
	return out
}

// keySchema is a key in the API's form, the partition key first, as the service demands.
func keySchema(k store.KeySchema) []types.KeySchemaElement {
	out := []types.KeySchemaElement{{AttributeName: aws.String(k.Partition.Name), KeyType: types.KeyTypeHash}}
	if k.Sort.Name != "" {
		out = append(out, types.KeySchemaElement{AttributeName: aws.String(k.Sort.Name), KeyType: types.KeyTypeRange})
	}
	return out
}

// projection is the part of its rows that an index holds: all attributes, or keys alone.
func projection(ix *store.Index) *types.Projection {
	if ix.KeysOnly {
		return &types.Projection{ProjectionType: types.ProjectionTypeKeysOnly}
	}
	return &types.Projection{ProjectionType: types.ProjectionTypeAll}
}
