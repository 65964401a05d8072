package dynamodb

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"weir/internal/store"
)

// TestReplicas: the other regions of a global table are told from the table's own, in the
// forms that DescribeTable has for both versions. DynamoDB Local has no global tables.
func TestReplicas(t *testing.T) {
	replica := func(names ...string) (out []types.ReplicaDescription) {
		for _, n := range names {
			out = append(out, types.ReplicaDescription{RegionName: aws.String(n)})
		}
		return out
	}
	const here = "arn:aws:dynamodb:eu-west-1:123456789012:table/things"
	for _, c := range []struct {
		is             types.TableDescription
		region, others string
	}{
		{types.TableDescription{TableArn: aws.String(here)}, "eu-west-1", ""},
		{types.TableDescription{TableArn: aws.String(here), Replicas: replica("eu-west-1")}, "eu-west-1", ""},
		{types.TableDescription{TableArn: aws.String(here), Replicas: replica("us-west-2", "eu-west-1", "us-east-1"), GlobalTableVersion: aws.String("2019.11.21")}, "eu-west-1", "us-east-1,us-west-2"},
		{types.TableDescription{TableArn: aws.String(here), GlobalTableVersion: aws.String("2017.11.29")}, "eu-west-1", "other regions"},
		{types.TableDescription{}, "", ""},
	} {
		if region, others := replicas(&c.is); region != c.region || others != c.others {
			t.Errorf("%+v: %q and %q, not %q and %q", c.is.Replicas, region, others, c.region, c.others)
		}
	}
	for is, want := range map[types.MultiRegionConsistency]bool{"": false, types.MultiRegionConsistencyEventual: false, types.MultiRegionConsistencyStrong: true} {
		if got := described(&store.Table{}, &types.TableDescription{TableArn: aws.String(here), MultiRegionConsistency: is}).Strong; got != want {
			t.Errorf("%q is strong: %v", is, got)
		}
	}
}
