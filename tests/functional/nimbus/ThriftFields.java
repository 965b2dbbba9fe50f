import java.util.Map;
import org.apache.storm.thrift.meta_data.EnumMetaData;
import org.apache.storm.thrift.meta_data.FieldMetaData;
import org.apache.storm.thrift.meta_data.FieldValueMetaData;
import org.apache.storm.thrift.meta_data.StructMetaData;

/** Prints `struct id field thrift-type` for each generated class of Storm that the arguments name. */
public final class ThriftFields {
    public static void main(String[] names) throws Exception {
        for (String name : names) {
            Map<?, ?> fields = (Map<?, ?>) Class.forName("org.apache.storm.generated." + name).getField("metaDataMap").get(null);
            for (Map.Entry<?, ?> entry : fields.entrySet()) {
                Object id = entry.getKey().getClass().getMethod("getThriftFieldId").invoke(entry.getKey());
                FieldMetaData field = (FieldMetaData) entry.getValue();
                System.out.println(name + " " + id + " " + field.fieldName + " " + type(field.valueMetaData));
            }
        }
    }

    private static int type(FieldValueMetaData value) {
        if (value instanceof StructMetaData) {
            return 12;
        }
        return value instanceof EnumMetaData ? 8 : value.type;
    }
}
