// A dashboard of the panel kinds that this project uses, in the types that Grafana publishes (@grafana/schema).
// `make grafana-schema` makes the JSON schema beside this file of it, which tests hold the dashboards against.
import type { AnnotationQuery, Dashboard as AnyDashboard, FieldConfig, FieldConfigSource, Panel, RowPanel } from '@grafana/schema';
import type * as BarGauge from '@grafana/schema/dist/esm/raw/composable/bargauge/panelcfg/x/BarGaugePanelCfg_types.gen';
import type * as Heatmap from '@grafana/schema/dist/esm/raw/composable/heatmap/panelcfg/x/HeatmapPanelCfg_types.gen';
import type * as Stat from '@grafana/schema/dist/esm/raw/composable/stat/panelcfg/x/StatPanelCfg_types.gen';
import type * as StatusHistory from '@grafana/schema/dist/esm/raw/composable/statushistory/panelcfg/x/StatusHistoryPanelCfg_types.gen';
import type * as Table from '@grafana/schema/dist/esm/raw/composable/table/panelcfg/x/TablePanelCfg_types.gen';
import type * as TimeSeries from '@grafana/schema/dist/esm/raw/composable/timeseries/panelcfg/x/TimeSeriesPanelCfg_types.gen';

// Grafana leaves open what a panel's options are; here each kind has its own, and nothing beside them. They may be left
// out one by one: Grafana fills in its defaults.
interface Fields<Custom> extends Omit<FieldConfigSource, 'defaults'> {
  defaults: Omit<FieldConfig, 'custom'> & { custom?: Partial<Custom> };
}
type Kind<Name extends string, Options, Custom> = Omit<Panel, 'type' | 'options' | 'fieldConfig'> & {
  type: Name;
  options?: Partial<Options>;
  fieldConfig: Fields<Custom>;
};
type KnownPanel =
  | Kind<'bargauge', BarGauge.Options, {}>
  | Kind<'heatmap', Heatmap.Options, Heatmap.FieldConfig>
  | Kind<'stat', Stat.Options, {}>
  | Kind<'status-history', StatusHistory.Options, StatusHistory.FieldConfig>
  | Kind<'table', Table.Options, Table.FieldConfig>
  | Kind<'timeseries', TimeSeries.Options, TimeSeries.FieldConfig>;

// The Prometheus plugin's own fields of an annotation; Grafana lets plugins add theirs beside the common ones.
interface PrometheusAnnotation extends Omit<AnnotationQuery, 'target'> {
  expr: string;
  useValueForTime?: boolean;
  titleFormat?: string;
  textFormat?: string;
  tagKeys?: string;
}

export interface Dashboard extends Omit<AnyDashboard, 'panels' | 'annotations'> {
  panels: Array<KnownPanel | RowPanel>;
  annotations: { list: PrometheusAnnotation[] };
}
